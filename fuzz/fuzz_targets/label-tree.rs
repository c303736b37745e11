#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| xmtree_fuzz::run("label-tree", data));
