//! Times writing and reading of model files.

use criterion::{criterion_group, criterion_main, Criterion, Throughput};
use xmtree::file::Bundle;

fn model(c: &mut Criterion) {
    let mut bundle = Bundle::new("bench");
    bundle.put("weights", vec![1.0_f32; 4 << 20]);
    bundle.put("counts", vec![1_u64; 1 << 20]);
    let bytes = bundle.to_bytes().expect("a small index");

    let mut group = c.benchmark_group("model");
    group.throughput(Throughput::Bytes(bytes.len() as u64));
    group.sample_size(20);
    group.bench_function("to_bytes", |b| b.iter(|| bundle.to_bytes()));
    group.bench_function("from_bytes", |b| b.iter(|| Bundle::from_bytes(&bytes)));
    group.finish();
}

criterion_group!(benches, model);
criterion_main!(benches);
