//! Tests of round trips and of damaged files.

mod storage;

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use super::{is_count, Array, Bundle, Flat, Persist, Record, Scores, VERSION};
use crate::error::{Error, Result};
use crate::{persist, record};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Params {
    rate: f64,
    name: Option<String>,
}

fn params() -> Params {
    Params {
        rate: 0.1 + 0.2,
        name: Some("é \"quoted\"\n".into()),
    }
}

fn small() -> Bundle {
    let mut inner = Bundle::new("tree");
    inner.put("weights", vec![1.5_f32, f32::NEG_INFINITY]);
    inner.put_meta("n_leaves", &3);
    let mut bundle = Bundle::new("forest");
    bundle.put("bytes", vec![1_u8, 2, 3]);
    bundle.put("nothing", Vec::<i64>::new());
    bundle.put("counts", vec![u64::MAX]);
    bundle.put_meta("params", &params());
    bundle.nest("tree0", inner);
    bundle
}

/// Returns the message of the expected `ModelFile` error.
fn complaint(result: Result<Bundle>) -> String {
    match result {
        Err(Error::ModelFile(message)) => message,
        other => panic!("expected a ModelFile error, got {other:?}"),
    }
}

/// Returns a file with this body and the right length and checksum, as an attacker would make it.
fn sealed(body: &[u8]) -> Vec<u8> {
    let mut bytes = small().to_bytes().unwrap()[..16].to_vec();
    bytes.extend((body.len() as u64).to_le_bytes());
    bytes.extend(body);
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    bytes
}

fn sealed_index(index: &str, data: &[u8]) -> Vec<u8> {
    let mut body = (index.len() as u64).to_le_bytes().to_vec();
    body.extend(index.as_bytes());
    body.extend(data);
    sealed(&body)
}

#[test]
fn every_type_round_trips() {
    let arrays = [
        ("a", Array::U8(vec![0, 255].into())),
        ("b", Array::U32(vec![u32::MAX, 1].into())),
        ("c", Array::I32(vec![i32::MIN].into())),
        ("d", Array::U64(vec![u64::MAX].into())),
        ("e", Array::I64(vec![i64::MIN, 7, 8].into())),
        ("f", Array::F32(vec![-0.0, f32::MIN_POSITIVE].into())),
        ("g", Array::F64(vec![0.1, f64::INFINITY].into())),
        ("i", Array::I8(vec![i8::MIN, 1].into())),
        ("k", Array::I16(vec![i16::MIN, 3].into())),
        ("j", Array::U16(vec![u16::MAX, 3, 4].into())),
        ("h", Array::F64((0..100_000).map(f64::from).collect())),
    ];
    let mut bundle = Bundle::new("all");
    for (name, array) in arrays.clone() {
        bundle.put(name, array);
    }
    let bytes = bundle.to_bytes().unwrap();
    let again = Bundle::from_bytes(&bytes).unwrap();
    assert_eq!(again, bundle);
    assert_eq!(again.kind(), "all");
    assert_eq!(bytes, again.to_bytes().unwrap(), "bytes differ");
}

#[test]
fn the_body_is_a_safetensors_file() {
    let bytes = small().to_bytes().unwrap();
    let body = safetensors::SafeTensors::deserialize(&bytes[24..bytes.len() - 4]).unwrap();
    assert_eq!(body.tensor("counts").unwrap().data(), [255; 8]);
    assert_eq!(body.tensor("tree0/weights").unwrap().shape(), [2]);
}

#[test]
fn the_layout_is_stable() {
    let mut bundle = Bundle::new("k");
    bundle.put("x", vec![258_u32]);
    let index = br#"{"__metadata__":{"xmtree":"{\"kind\":\"k\",\"meta\":{}}"},"x":{"dtype":"U32","shape":[1],"data_offsets":[0,4]}}"#;
    let mut expected = b"\x89XMTREE\n\x03\0\0\0\0\0\0\0".to_vec();
    let padded = index.len().next_multiple_of(8);
    expected.extend((8 + padded as u64 + 4).to_le_bytes());
    expected.extend((padded as u64).to_le_bytes());
    expected.extend(index);
    expected.resize(32 + padded, b' ');
    expected.extend([2, 1, 0, 0]);
    expected.extend(crc32fast::hash(&expected).to_le_bytes());
    assert_eq!(bundle.to_bytes().unwrap(), expected);
}

#[test]
fn errors_of_take_name_the_array() {
    let mut bundle = small();
    assert_eq!(bundle.take_meta::<Params>("params").unwrap(), params());
    assert!(bundle.take::<i64>("nothing").unwrap().is_empty());
    let missing = bundle.take::<i64>("nothing").unwrap_err().to_string();
    assert_eq!(
        missing,
        "serialized model: damaged model: array \"nothing\" is missing"
    );
    let other = bundle.take::<f64>("counts").unwrap_err().to_string();
    assert!(other.ends_with("array \"counts\" holds U64, expected F64"));
    let length = u8::take(Some(4), "bytes", &mut bundle).unwrap_err();
    assert!(length.to_string().ends_with("3 elements, expected 4"));
    let meta = bundle.take_meta::<Params>("params").unwrap_err();
    assert!(meta.to_string().ends_with("metadata \"params\" is missing"));
}

#[test]
fn floats_out_of_bounds_are_refused() {
    let put = || {
        let mut bundle = Bundle::new("k");
        bundle.put("fine", vec![1e38f32, -1e38, 0.0]);
        bundle.put("single", vec![0.0, 1.1e38f32]);
        bundle.put("nan", vec![f32::NAN]);
        bundle.put("double", vec![1e100, -1.1e100]);
        bundle.put("scores", vec![f32::NEG_INFINITY, 1.0]);
        bundle
    };
    let mut bundle = put();
    assert_eq!(bundle.take::<f32>("fine").unwrap().len(), 3);
    for (name, at) in [("single", 1), ("nan", 0)] {
        let refused = bundle.take::<f32>(name).unwrap_err().to_string();
        assert!(refused.ends_with(&format!("value {at} of {name:?} is out of range")));
    }
    let refused = bundle
        .take_flat::<f64>("double", None)
        .unwrap_err()
        .to_string();
    assert!(refused.ends_with("value 1 of \"double\" is out of range"));
    assert_eq!(put().take_any::<f32>("single").unwrap(), [0.0, 1.1e38]);
    let mut scores: Vec<f32> = Vec::new();
    Scores::fill(&mut scores, "scores", &mut put()).unwrap();
    assert_eq!(scores, [f32::NEG_INFINITY, 1.0]);
    assert!(Scores::fill(&mut scores, "nan", &mut put()).is_err());
}

#[test]
fn nested_bundles_do_not_mix() {
    let mut outer = Bundle::new("forest");
    for prefix in ["t1", "t", "t10", "t0"] {
        let mut inner = Bundle::new(prefix);
        inner.put("label", prefix.as_bytes().to_vec());
        let mut deep = Bundle::new("deep");
        deep.put("x", vec![1_u8]);
        inner.nest("t", deep);
        outer.nest(prefix, inner);
    }
    outer.put("t2", vec![9_u8]);
    let mut outer = Bundle::from_bytes(&outer.to_bytes().unwrap()).unwrap();
    for prefix in ["t", "t0", "t10", "t1"] {
        let mut inner = outer.unnest(prefix).unwrap();
        assert_eq!(inner.kind(), prefix);
        assert_eq!(inner.take::<u8>("label").unwrap(), prefix.as_bytes());
        assert_eq!(inner.unnest("t").unwrap().take::<u8>("x").unwrap(), [1]);
        assert!(inner.arrays().is_empty());
        assert!(inner.meta().is_empty());
    }
    assert!(matches!(outer.unnest("t"), Err(Error::ModelFile(_))));
    assert_eq!(outer.take::<u8>("t2").unwrap(), [9]);
    assert!(outer.arrays().is_empty());
}

#[test]
fn every_truncation_is_detected() {
    let bytes = small().to_bytes().unwrap();
    for len in 0..bytes.len() {
        complaint(Bundle::from_bytes(&bytes[..len]));
    }
    let mut longer = bytes;
    longer.push(0);
    complaint(Bundle::from_bytes(&longer));
}

#[test]
fn every_flipped_bit_is_detected() {
    let mut bytes = small().to_bytes().unwrap();
    for i in 0..bytes.len() {
        for bit in 0..8 {
            bytes[i] ^= 1 << bit;
            complaint(Bundle::from_bytes(&bytes));
            bytes[i] ^= 1 << bit;
        }
    }
    assert_eq!(Bundle::from_bytes(&bytes).unwrap(), small());
}

#[test]
fn messages_name_the_fault_and_the_fix() {
    let bytes = small().to_bytes().unwrap();
    let changed = |at: usize, to: &[u8]| {
        let mut bytes = bytes.clone();
        bytes[at..at + to.len()].copy_from_slice(to);
        complaint(Bundle::from_bytes(&bytes))
    };
    assert!(changed(0, b"PK\x03\x04").contains("not an xmtree model"));
    assert!(changed(8, &(VERSION + 1).to_le_bytes()).contains("upgrade xmtree"));
    assert!(changed(8, &(VERSION - 1).to_le_bytes()).contains("train it again"));
    assert!(changed(16, &[255; 8]).contains("promises far more"));
    assert!(changed(24, &[255; 8]).contains("length of its index"));
    assert!(changed(bytes.len() - 1, b"?").contains("checksum"));
    assert!(complaint(Bundle::from_bytes(b"")).contains("empty"));
    assert!(complaint(Bundle::from_bytes(b"label,f1\n")).contains("not an xmtree model"));
    assert!(complaint(Bundle::from_bytes(&bytes[..30])).contains("ends after 30 bytes"));
}

#[test]
fn forged_bodies_are_refused() {
    let cases: [(&str, &[u8]); 9] = [
        ("", b""),
        ("{", b""),
        ("{}", b""),
        (r#"{"__metadata__":{"xmtree":"[]"}}"#, b""),
        (
            r#"{"x":{"dtype":"F64","shape":[2305843009213693952],"data_offsets":[0,0]}}"#,
            b"",
        ),
        (
            r#"{"x":{"dtype":"F64","shape":[1000000000000],"data_offsets":[0,8000000000000]}}"#,
            b"12345678",
        ),
        (
            r#"{"x":{"dtype":"F16","shape":[1],"data_offsets":[0,2]}}"#,
            b"12",
        ),
        (
            r#"{"x":{"dtype":"U8","shape":[1,2],"data_offsets":[0,2]}}"#,
            b"12",
        ),
        (
            r#"{"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}"#,
            b"12",
        ),
    ];
    for (index, data) in cases {
        complaint(Bundle::from_bytes(&sealed_index(index, data)));
    }
    complaint(Bundle::from_bytes(&sealed(&u64::MAX.to_le_bytes())));
}

#[test]
fn files_are_replaced_atomically() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("model.xmt");
    small().write(&path).unwrap();
    let mut other = Bundle::new("other");
    other.put("x", vec![1.0_f64]);
    other.write(&path).unwrap();
    let again = Bundle::read(&path).unwrap();
    assert_eq!(again.arrays(), other.arrays());
    let complaint = again.damaged("x").to_string();
    assert!(complaint.contains("model.xmt"), "{complaint}");
    fs::write(&path, b"something else").unwrap();
    let foreign = Bundle::read(&path).unwrap_err().to_string();
    assert!(foreign.contains("model.xmt"), "{foreign}");

    // A target that cannot be replaced leaves nothing behind.
    let folder = directory.path().join("folder");
    fs::create_dir(&folder).unwrap();
    assert!(matches!(small().write(&folder), Err(Error::Io { .. })));
    let nowhere = directory.path().join("absent/model.xmt");
    assert!(matches!(small().write(&nowhere), Err(Error::Io { .. })));
    assert!(matches!(Bundle::read(&nowhere), Err(Error::Io { .. })));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
}

#[cfg(unix)]
#[test]
fn links_modes_and_devices_are_preserved() {
    use std::os::unix::fs::{symlink, FileTypeExt, PermissionsExt};

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("model.xmt");
    let link = directory.path().join("link");
    small().write(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    symlink(&path, &link).unwrap();
    small().write(&link).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);

    let circle = directory.path().join("circle");
    symlink("circle", &circle).unwrap();
    assert!(matches!(small().write(&circle), Err(Error::Io { .. })));

    // This device has no end.
    let zero = Bundle::read(Path::new("/dev/zero")).unwrap_err();
    assert!(zero.to_string().contains("not an xmtree model"), "{zero}");

    let null = Path::new("/dev/null");
    small().write(null).unwrap();
    assert!(fs::metadata(null).unwrap().file_type().is_char_device());
    assert!(matches!(Bundle::read(null), Err(Error::ModelFile(_))));
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Item {
    weight: f64,
    is_new: bool,
    entries: Vec<u32>,
}

record!(Item {
    weight: is_count,
    is_new,
    entries
});

#[derive(Debug, Default, PartialEq)]
struct Store {
    version: u32,
    items: Vec<Item>,
}

persist!(Store {
    Meta version;
    Columns items;
} check check_stored);

impl Store {
    fn check_stored(&self) -> Result<()> {
        match self.version {
            7 => Ok(()),
            other => Err(Error::data(format!("version {other}"))),
        }
    }
}

fn store() -> Store {
    let item = |weight, entries: &[u32]| Item {
        weight,
        is_new: weight > 1.0,
        entries: entries.to_vec(),
    };
    let items = vec![item(1.5, &[3, 1]), item(0.0, &[]), item(2.0, &[9])];
    Store { version: 7, items }
}

#[test]
fn listed_fields_round_trip_and_are_checked() {
    let put = || {
        let mut bundle = Bundle::new("store");
        store().put(&mut bundle);
        Bundle::from_bytes(&bundle.to_bytes().unwrap()).unwrap()
    };
    let mut again = Store::default();
    again.fill(&mut put()).unwrap();
    assert_eq!(again, store());

    let message = |change: &dyn Fn(&mut Bundle)| {
        let mut bundle = put();
        change(&mut bundle);
        Store::default().fill(&mut bundle).unwrap_err().to_string()
    };
    let replaced = |name: &str, values: Array| {
        message(&|bundle| {
            bundle.arrays.insert(name.into(), values.clone());
        })
    };
    let weights = replaced("items.weight", vec![1.0, f64::NAN, 1.0].into());
    assert!(weights.contains("value 1 of \"items.weight\" is out of range"));
    let fewer = replaced("items.is_new", vec![1u8].into());
    assert!(fewer.contains("has 1 elements, expected 3"), "{fewer}");
    let lengths = replaced("items.entries.length", vec![2u32, 0, 7].into());
    assert!(lengths.contains("has 3 elements, expected 9"), "{lengths}");
    let version = message(&|bundle| {
        bundle.take_meta::<u32>("version").unwrap();
        bundle.put_meta("version", &8);
    });
    assert!(version.contains("damaged model: version 8"), "{version}");
    let kind = put().expect_kind("forest").unwrap_err().to_string();
    assert!(kind.ends_with("expected a model of kind \"forest\", got \"store\""));
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(Bundle::from_bytes(&bytes).is_err());
        prop_assert!(Bundle::from_bytes(&sealed(&bytes)).is_err());
    }

    #[test]
    fn arbitrary_indexes_never_panic(
        dtype in "[UFI](8|16|32|64)",
        shape in proptest::collection::vec(any::<u64>(), 0..3),
        start in 0..9_u64,
        end in any::<u64>(),
        data in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        let index = format!(
            r#"{{"x":{{"dtype":"{dtype}","shape":{shape:?},"data_offsets":[{start},{end}]}}}}"#
        );
        prop_assert!(Bundle::from_bytes(&sealed_index(&index, &data)).is_err());
    }

    #[test]
    fn arrays_round_trip(
        floats in proptest::collection::vec(any::<f32>(), 0..50),
        value in any::<f64>().prop_filter("JSON", |v| v.is_finite()),
    ) {
        let mut bundle = Bundle::new("p");
        bundle.put("f", floats.clone());
        bundle.put_meta("v", &value);
        let mut again = Bundle::from_bytes(&bundle.to_bytes().unwrap()).unwrap();
        let bits = |v: &[f32]| v.iter().map(|f| f.to_bits()).collect::<Vec<_>>();
        prop_assert_eq!(bits(&again.take_any::<f32>("f").unwrap()), bits(&floats));
        prop_assert_eq!(again.take_meta::<f64>("v").unwrap().to_bits(), value.to_bits());
    }
}
