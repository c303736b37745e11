//! Targets that load model files and use every model that loads.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use xmtree::file::Bundle;
use xmtree::learners;

use super::edits::{with_checksum, ModelFile};
use super::exercise::exercise;

/// Returns the valid models of a kind of learner.
fn sound_models(kind: &str) -> &'static [ModelFile] {
    static MODELS: OnceLock<BTreeMap<String, Vec<ModelFile>>> = OnceLock::new();
    let all = MODELS.get_or_init(|| {
        let folder = Path::new(super::super::SEEDS).join("container");
        let mut files: Vec<_> = fs::read_dir(&folder)
            .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
            .map(|entry| entry.unwrap().path())
            .collect();
        files.sort();
        let mut models = BTreeMap::<String, Vec<ModelFile>>::new();
        for file in files {
            let name = file.file_name().unwrap().to_str().unwrap();
            let (kind, _) = name.split_once('.').unwrap();
            let model = ModelFile::parse(&fs::read(&file).unwrap());
            models.entry(kind.into()).or_default().push(model);
        }
        models
    });
    &all[kind]
}

/// Edits a valid model of `kind` and uses it. The first byte chooses the model.
pub fn edited(kind: &str, data: &[u8]) {
    let models = sound_models(kind);
    let Some((&first, program)) = data.split_first() else {
        return;
    };
    let mut model = models[usize::from(first) % models.len()].clone();
    model.edit(program);
    load_and_use(&model.to_bytes());
}

/// Loads `data` as a model file. Its first bytes, the length of its body and its checksum are
/// corrected before, because a wrong one would end reading at once.
pub fn container(data: &[u8]) {
    let mut file = b"\x89XMTREE\n".to_vec();
    file.extend(xmtree::file::VERSION.to_le_bytes());
    file.extend([0; 4]);
    let body = data.get(24..data.len().saturating_sub(4)).unwrap_or(data);
    file.extend((body.len() as u64).to_le_bytes());
    file.extend(body);
    load_and_use(&with_checksum(file));
}

fn load_and_use(file: &[u8]) {
    let model = Bundle::from_bytes(file).and_then(learners::load);
    if let Ok(model) = model {
        exercise(model);
    }
}
