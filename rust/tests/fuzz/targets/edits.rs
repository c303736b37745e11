//! Edits of model files that keep the format valid. A changed byte alone would only test the
//! checksum.

use serde_json::{json, Map, Value};

/// Number of bytes before the index: magic, version, padding and two lengths.
const BEFORE_INDEX: usize = 32;
/// Number of bytes of an edit.
pub const EDIT: usize = 12;
/// Largest number of edits.
const MOST_EDITS: usize = 12;

/// The parsed parts of a model file.
#[derive(Clone)]
pub struct ModelFile {
    /// Magic, version and padding.
    start: [u8; 16],
    /// Kind and metadata.
    head: Value,
    arrays: Vec<NamedArray>,
}

#[derive(Clone)]
struct NamedArray {
    name: String,
    dtype: String,
    bytes: Vec<u8>,
}

impl NamedArray {
    /// Returns the number of bytes of an element.
    fn width(&self) -> usize {
        match self.dtype.as_str() {
            "U8" | "I8" => 1,
            "U16" | "I16" => 2,
            "U32" | "I32" | "F32" => 4,
            _ => 8,
        }
    }

    fn len(&self) -> usize {
        self.bytes.len() / self.width()
    }
}

impl ModelFile {
    /// Parses a valid file.
    pub fn parse(file: &[u8]) -> Self {
        let length = u64::from_le_bytes(file[24..32].try_into().unwrap()) as usize;
        let (index, data) = file[BEFORE_INDEX..].split_at(length);
        let mut index: Map<String, Value> = serde_json::from_slice(index).unwrap();
        let metadata = index.remove("__metadata__").unwrap();
        let head = serde_json::from_str(metadata["xmtree"].as_str().unwrap()).unwrap();
        let array = |(name, info): (String, Value)| {
            let offset = |at: usize| info["data_offsets"][at].as_u64().unwrap() as usize;
            NamedArray {
                name,
                dtype: info["dtype"].as_str().unwrap().into(),
                bytes: data[offset(0)..offset(1)].to_vec(),
            }
        };
        Self {
            start: file[..16].try_into().unwrap(),
            head,
            arrays: index.into_iter().map(array).collect(),
        }
    }

    /// Returns the file, with correct lengths and checksum.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut arrays: Vec<&NamedArray> = self.arrays.iter().collect();
        arrays.sort_by_key(|array| (std::cmp::Reverse(array.width()), &array.name));
        let mut index = Map::new();
        index.insert(
            "__metadata__".into(),
            json!({ "xmtree": self.head.to_string() }),
        );
        let mut data: Vec<u8> = Vec::new();
        for array in arrays {
            let (from, width) = (data.len(), array.width());
            data.extend(&array.bytes[..array.len() * width]);
            let info = json!({
                "dtype": array.dtype,
                "shape": [array.len()],
                "data_offsets": [from, data.len()],
            });
            index.insert(array.name.clone(), info);
        }
        let mut index = Value::Object(index).to_string().into_bytes();
        index.resize(index.len().next_multiple_of(8), b' ');
        let mut file = self.start.to_vec();
        file.extend((8 + index.len() as u64 + data.len() as u64).to_le_bytes());
        file.extend((index.len() as u64).to_le_bytes());
        file.extend(index);
        file.extend(data);
        with_checksum(file)
    }

    /// Applies the edits in `program`. Each has [`EDIT`] bytes: the kind of edit, the array or
    /// metadata, the position in it, and a value.
    pub fn edit(&mut self, program: &[u8]) {
        for edit in program.chunks_exact(EDIT).take(MOST_EDITS) {
            let which = usize::from(u16::from_le_bytes([edit[1], edit[2]]));
            let at = usize::from(u16::from_le_bytes([edit[3], edit[4]]));
            let value: [u8; 7] = edit[5..].try_into().unwrap();
            match edit[0] % 16 {
                0..=9 => self.edit_array(edit[0] % 16, which, at, value),
                10 => self.rename_arrays(which, at),
                11 => self.retype_array(which, at),
                _ => self.edit_metadata(which, value),
            }
        }
    }

    fn edit_array(&mut self, how: u8, which: usize, at: usize, value: [u8; 7]) {
        let n_arrays = self.arrays.len().max(1);
        let Some(array) = self.arrays.get_mut(which % n_arrays) else {
            return;
        };
        let (n, width) = (array.len(), array.width());
        let element = at % n.max(1) * width;
        if n == 0 && how < 8 {
            return;
        }
        match how {
            0..=2 => {
                let number = extreme_number(&array.dtype, value[0], n);
                array.bytes[element..element + width].copy_from_slice(&number[..width]);
            }
            3 => {
                for (byte, new) in array.bytes[element..element + width].iter_mut().zip(value) {
                    *byte ^= new;
                }
            }
            4 | 5 => {
                let other = usize::from(value[0]) % n * width;
                array.bytes.copy_within(other..other + width, element);
            }
            6 => array.bytes[element] = array.bytes[element].wrapping_add(1),
            7 => array.bytes[element] = array.bytes[element].wrapping_sub(1),
            8 => array.bytes.truncate(element),
            _ => {
                let n_bytes = (usize::from(value[0] % 16) + 1) * width;
                let more = array.bytes.iter().copied().cycle().take(n_bytes);
                let more: Vec<u8> = if n == 0 {
                    vec![value[1]; n_bytes]
                } else {
                    more.collect()
                };
                array.bytes.extend(more);
            }
        }
    }

    /// Swaps the names of two arrays, or removes an array if both numbers choose the same one.
    fn rename_arrays(&mut self, which: usize, other: usize) {
        let n = self.arrays.len();
        if n == 0 {
            return;
        }
        let (one, two) = (which % n, other % n);
        if one == two {
            self.arrays.remove(one);
            return;
        }
        let name = std::mem::take(&mut self.arrays[one].name);
        self.arrays[one].name = std::mem::replace(&mut self.arrays[two].name, name);
    }

    fn retype_array(&mut self, which: usize, dtype: usize) {
        const DTYPES: [&str; 10] = [
            "U8", "I8", "U16", "I16", "U32", "I32", "U64", "I64", "F32", "F64",
        ];
        let n_arrays = self.arrays.len().max(1);
        if let Some(array) = self.arrays.get_mut(which % n_arrays) {
            array.dtype = DTYPES[dtype % DTYPES.len()].into();
        }
    }

    fn edit_metadata(&mut self, which: usize, value: [u8; 7]) {
        let mut leaves = Vec::new();
        collect_leaves(&mut self.head, &mut leaves);
        let n_leaves = leaves.len().max(1);
        if let Some(leaf) = leaves.into_iter().nth(which % n_leaves) {
            *leaf = extreme_json(leaf, value);
        }
    }
}

/// Appends the checksum to `file`.
pub fn with_checksum(mut file: Vec<u8>) -> Vec<u8> {
    let checksum = crc32fast::hash(&file);
    file.extend(checksum.to_le_bytes());
    file
}

/// Collects all values in `value` that contain no others.
fn collect_leaves<'a>(value: &'a mut Value, leaves: &mut Vec<&'a mut Value>) {
    if let Value::Object(map) = value {
        map.values_mut()
            .for_each(|inner| collect_leaves(inner, leaves));
    } else if value.as_array().is_some_and(|list| !list.is_empty()) {
        let list = value.as_array_mut().into_iter().flatten();
        list.for_each(|inner| collect_leaves(inner, leaves));
    } else {
        leaves.push(value);
    }
}

/// Returns a number that programs often handle wrongly, as the bytes of an element. `n` is the length
/// of the array.
fn extreme_number(dtype: &str, which: u8, n: usize) -> [u8; 8] {
    if dtype.starts_with('F') {
        const FLOATS: [f64; 16] = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            1e-45,
            -1e-45,
            3e38,
            -3e38,
            1e18,
            1e308,
            -1e308,
            0.5,
            16_777_217.0,
        ];
        let float = FLOATS[usize::from(which) % FLOATS.len()];
        let mut bytes = [0; 8];
        if dtype == "F32" {
            bytes[..4].copy_from_slice(&(float as f32).to_le_bytes());
            return bytes;
        }
        return float.to_le_bytes();
    }
    let n = n as u64;
    let integers = [
        0,
        1,
        2,
        n,
        n.wrapping_sub(1),
        n + 1,
        u64::MAX,
        u64::MAX - 1,
        1 << 31,
        (1 << 31) - 1,
        0xffff_ffff,
        0xffff_fffe,
        1 << 15,
        0x7f7f_7f7f_7f7f_7f7f,
        0x8080_8080_8080_8080,
        1 << 62,
    ];
    integers[usize::from(which) % integers.len()].to_le_bytes()
}

/// Returns a value to replace `old`.
fn extreme_json(old: &Value, value: [u8; 7]) -> Value {
    let [which, a, b, c, d, e, f] = value;
    let number = u64::from_le_bytes([a, b, c, d, e, f, 0, 0]);
    match which % 20 {
        0 => json!(null),
        1 => json!(0),
        2 => json!(1),
        3 => json!(-1),
        4 => json!(2),
        5 => json!(u64::MAX),
        6 => json!(1_u64 << 31),
        7 => json!(u32::MAX),
        8 => json!(1e308),
        9 => json!(1e-300),
        10 => json!(-0.5),
        11 => json!(true),
        12 => json!(false),
        13 => json!(""),
        14 => json!([]),
        15 => json!({}),
        16 => json!(number & 0xff),
        17 => json!(number),
        18 => json!(old.as_i64().map(|n| n.wrapping_add(1))),
        _ => json!(old.as_i64().map(|n| n.wrapping_sub(1))),
    }
}
