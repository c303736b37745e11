//! Counts of words, sequences of words, and character n-grams in texts, as sparse rows.
//!
//! Columns and counts equal those of scikit-learn's `CountVectorizer` and `HashingVectorizer` with
//! words of `\w+`, and weights those of its `TfidfTransformer(sublinear_tf=True)`. Words are kept in
//! one buffer, ` a b c `, in which every n-gram is a slice. A text costs a hash lookup per n-gram.
//!
//! Texts are ASCII, of which any character but letters, digits and underscores separates words; or
//! they are words in lower case, separated by spaces. The caller brings other texts into the second
//! form, because Python's own tables decide which characters are letters and how they are lowered.

use std::hash::BuildHasher;
use std::ops::Range;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::control::Control;
use crate::error::{Error, Result};
use crate::threads::{map_with_worker, with_threads};

/// Largest number of columns, whose numbers scipy holds as `i32`.
const MAX_COLUMNS: usize = 1 << 31;
/// Texts that a thread counts between two checks for Ctrl-C.
const BLOCK: usize = 256;

/// The n-grams that are features.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// Sequences of 1 to this many words.
    Words(usize),
    /// Sequences of characters of a word between two spaces, with lengths from the first to the
    /// second. A word that is not longer is one n-gram.
    Characters(usize, usize),
}

/// The words of one text.
#[derive(Debug, Default)]
struct Words {
    /// The words in lower case, with a space before and after each.
    bytes: Vec<u8>,
    spans: Vec<Range<usize>>,
    /// Scratch: the starts of a word's characters, and its end.
    characters: Vec<usize>,
}

impl Words {
    fn read(&mut self, text: &str) {
        let is_in_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 0x80;
        self.spans.clear();
        self.bytes.clear();
        self.bytes.push(b' ');
        let words = text.as_bytes().split(|byte| !is_in_word(byte));
        for word in words.filter(|word| !word.is_empty()) {
            let start = self.bytes.len();
            self.bytes.extend(word.iter().map(u8::to_ascii_lowercase));
            self.spans.push(start..self.bytes.len());
            self.bytes.push(b' ');
        }
    }

    /// Calls `take` with each n-gram, as often as it occurs.
    fn for_each(&mut self, kind: Kind, mut take: impl FnMut(&[u8])) {
        match kind {
            Kind::Words(most) => {
                for n in 1..=most.min(self.spans.len()) {
                    for words in self.spans.windows(n) {
                        take(&self.bytes[words[0].start..words[n - 1].end]);
                    }
                }
            }
            Kind::Characters(least, most) => {
                for span in &self.spans {
                    let word = &self.bytes[span.start - 1..=span.end];
                    let is_start = |&at: &usize| word[at] & 0xC0 != 0x80;
                    self.characters.clear();
                    self.characters.extend((0..word.len()).filter(is_start));
                    let n_characters = self.characters.len();
                    self.characters.push(word.len());
                    for n in least..=most {
                        for starts in self.characters.windows(n.min(n_characters) + 1) {
                            take(&word[starts[0]..starts[starts.len() - 1]]);
                        }
                        if n >= n_characters {
                            break;
                        }
                    }
                }
            }
        }
    }
}

/// Different n-grams, numbered in the order in which they were added.
///
/// Their bytes lie one after another, so that a large vocabulary fits the caches better than with
/// an allocation each. Hashes are seeded at random, so that no text can be made to collide.
#[derive(Debug)]
struct Vocabulary {
    numbers: HashTable<u32>,
    hasher: DefaultHashBuilder,
    bytes: Vec<u8>,
    /// Where each n-gram starts in `bytes`, and the end of the last.
    starts: Vec<usize>,
}

impl Default for Vocabulary {
    fn default() -> Self {
        Self {
            numbers: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            bytes: Vec::new(),
            starts: vec![0],
        }
    }
}

impl Vocabulary {
    fn len(&self) -> usize {
        self.numbers.len()
    }

    fn ngram(&self, number: u32) -> &[u8] {
        ngram(&self.bytes, &self.starts, number)
    }

    fn ngrams(&self) -> Vec<&[u8]> {
        let numbers = 0..self.len() as u32;
        numbers.map(|number| self.ngram(number)).collect()
    }

    fn find(&self, wanted: &[u8]) -> Option<u32> {
        let hash = self.hasher.hash_one(wanted);
        let is_wanted = |&number: &u32| self.ngram(number) == wanted;
        self.numbers.find(hash, is_wanted).copied()
    }

    /// Returns the number of an n-gram, which is added if it is new.
    fn add(&mut self, new: &[u8]) -> u32 {
        let hash = |bytes: &[u8]| self.hasher.hash_one(bytes);
        let (bytes, starts) = (&self.bytes, &self.starts);
        let is_new = |&number: &u32| ngram(bytes, starts, number) == new;
        let rehash = |&number: &u32| hash(ngram(bytes, starts, number));
        let number = self.numbers.len() as u32;
        let entry = self.numbers.entry(hash(new), is_new, rehash);
        let found = *entry.or_insert(number).get();
        if found == number {
            self.bytes.extend_from_slice(new);
            self.starts.push(self.bytes.len());
        }
        found
    }

    /// Returns the n-grams that occur in at least `min_df` of the texts, in the order of their
    /// bytes.
    fn learned(kind: Kind, texts: &[&str], min_df: usize, control: &Control) -> Result<Self> {
        let (mut words, mut found) = (Words::default(), Vec::new());
        let (mut all, mut n_texts) = (Self::default(), Vec::new());
        for block in texts.chunks(BLOCK) {
            control.check()?;
            for text in block {
                words.read(text);
                found.clear();
                words.for_each(kind, |ngram| found.push(all.add(ngram)));
                n_texts.resize(all.len(), 0_usize);
                found.sort_unstable();
                found.dedup();
                found.iter().for_each(|&ngram| n_texts[ngram as usize] += 1);
            }
        }
        let mut kept = Vec::new();
        for (number, &n) in n_texts.iter().enumerate() {
            if n >= min_df {
                let ngram = all.ngram(number as u32);
                // Most comparisons end at the first bytes, without a cache miss.
                let mut first = [0; 8];
                first[..ngram.len().min(8)].copy_from_slice(&ngram[..ngram.len().min(8)]);
                kept.push((u64::from_be_bytes(first), ngram));
            }
        }
        if kept.is_empty() {
            let most = n_texts.into_iter().max().unwrap_or(0);
            let allowed = format!("at most {most}, as otherwise no terms remain");
            return Err(Error::parameter("min_df", min_df, allowed));
        }
        kept.sort_unstable();
        let mut vocabulary = Self::default();
        for (_, ngram) in kept {
            vocabulary.add(ngram);
        }
        Ok(vocabulary)
    }
}

fn ngram<'a>(bytes: &'a [u8], starts: &[usize], number: u32) -> &'a [u8] {
    &bytes[starts[number as usize]..starts[number as usize + 1]]
}

/// The numbers of n-grams.
#[derive(Debug)]
enum Columns {
    /// By a hash of this many bits.
    Hashed(u32),
    /// By their places in a vocabulary; others have none.
    Known(Vocabulary),
}

impl Columns {
    fn of(&self, ngram: &[u8]) -> Option<u32> {
        match self {
            // scikit-learn's column. It excludes -2^31, whose absolute value is none of i32, but
            // gives it the column 0 that the lowest bits have, too.
            Self::Hashed(n_bits) => {
                Some((murmur3(ngram) as i32).unsigned_abs() & ((1 << n_bits) - 1))
            }
            Self::Known(vocabulary) => vocabulary.find(ngram),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Hashed(n_bits) => 1 << n_bits,
            Self::Known(vocabulary) => vocabulary.len(),
        }
    }
}

/// Sparse rows of counts, in increasing order of columns.
#[derive(Debug, Clone, PartialEq)]
pub struct Counts {
    /// Where each row starts, and the end of the last.
    pub starts: Vec<i64>,
    /// Columns of the entries.
    pub columns: Vec<i32>,
    /// Counts of the entries.
    pub values: Vec<f32>,
}

impl Default for Counts {
    fn default() -> Self {
        Self {
            starts: vec![0],
            columns: Vec::new(),
            values: Vec::new(),
        }
    }
}

impl Counts {
    /// Adds a row with one entry per different column in `found`, which is sorted.
    fn push(&mut self, found: &mut [u32]) {
        found.sort_unstable();
        for equal in found.chunk_by(|a, b| a == b) {
            self.columns.push(equal[0] as i32);
            self.values.push(equal.len() as f32);
        }
        self.starts.push(self.columns.len() as i64);
    }

    fn append(&mut self, other: &Self) {
        let before = self.columns.len() as i64;
        let starts = other.starts[1..].iter().map(|start| before + start);
        self.starts.extend(starts);
        self.columns.extend_from_slice(&other.columns);
        self.values.extend_from_slice(&other.values);
    }
}

/// Counts the n-grams of texts. Kinds of n-grams have columns of their own, in the given order.
#[derive(Debug)]
pub struct NgramCounter(Vec<(Kind, Columns)>);

impl NgramCounter {
    /// Numbers n-grams by hashes of `n_bits`, from 1 to 30.
    pub fn hashed(kinds: &[Kind], n_bits: u32) -> Result<Self> {
        if !(1..=30).contains(&n_bits) {
            return Err(Error::parameter("n_bits", n_bits, "from 1 to 30"));
        }
        let hashed = |&kind| (kind, Columns::Hashed(n_bits));
        Self::new(kinds.iter().map(hashed).collect())
    }

    /// Numbers the n-grams of each kind by their places in `vocabularies`.
    pub fn known<'a, T>(kinds: &[Kind], vocabularies: T) -> Result<Self>
    where
        T: IntoIterator<Item: IntoIterator<Item = &'a [u8]>>,
    {
        let known = kinds.iter().zip(vocabularies).map(|(&kind, ngrams)| {
            let mut vocabulary = Vocabulary::default();
            for (column, ngram) in ngrams.into_iter().enumerate() {
                if vocabulary.add(ngram) as usize != column {
                    return Err(Error::data("a vocabulary contains a word twice"));
                }
            }
            Ok((kind, Columns::Known(vocabulary)))
        });
        Self::new(known.collect::<Result<_>>()?)
    }

    /// Numbers the n-grams that occur in at least `min_df` of the `texts`.
    pub fn learned(
        kinds: &[Kind],
        texts: &[&str],
        min_df: usize,
        control: &Control,
    ) -> Result<Self> {
        let learned = kinds.iter().map(|&kind| {
            let vocabulary = Vocabulary::learned(kind, texts, min_df, control)?;
            Ok((kind, Columns::Known(vocabulary)))
        });
        Self::new(learned.collect::<Result<_>>()?)
    }

    fn new(kinds: Vec<(Kind, Columns)>) -> Result<Self> {
        let counter = Self(kinds);
        if counter.n_columns() > MAX_COLUMNS {
            return Err(Error::data(format!(
                "the texts have {} features, at most {MAX_COLUMNS} are allowed; set min_df or \
                 n_bits",
                counter.n_columns()
            )));
        }
        Ok(counter)
    }

    /// Number of columns of all kinds.
    pub fn n_columns(&self) -> usize {
        self.0.iter().map(|(_, columns)| columns.len()).sum()
    }

    /// Returns the n-grams of each kind in the order of their columns; none if they are hashed.
    pub fn vocabularies(&self) -> Vec<Vec<&[u8]>> {
        let known = self.0.iter().filter_map(|(_, columns)| match columns {
            Columns::Hashed(_) => None,
            Columns::Known(vocabulary) => Some(vocabulary),
        });
        known.map(Vocabulary::ngrams).collect()
    }

    /// Counts the n-grams of each text. The result does not depend on the number of threads.
    pub fn count(&self, texts: &[&str], n_threads: usize, control: &Control) -> Result<Counts> {
        let n_blocks = texts.len().div_ceil(BLOCK);
        let blocks = with_threads(n_threads.min(n_blocks), |is_parallel| {
            let scratch = || (Words::default(), Vec::new());
            map_with_worker(is_parallel, (n_blocks, 1), scratch, |scratch, block| {
                control.check()?;
                let (words, found) = scratch;
                let mut counts = Counts::default();
                for text in texts.iter().skip(block * BLOCK).take(BLOCK) {
                    words.read(text);
                    found.clear();
                    let mut first = 0;
                    for (kind, columns) in &self.0 {
                        words.for_each(*kind, |ngram| {
                            found.extend(columns.of(ngram).map(|column| first + column));
                        });
                        first += columns.len() as u32;
                    }
                    counts.push(found);
                }
                Ok(counts)
            })
        })??;
        let mut blocks = blocks.into_iter();
        let mut counts = blocks.next().unwrap_or_default();
        blocks.for_each(|block| counts.append(&block));
        Ok(counts)
    }
}

/// Turns logarithms of counts into weights, (1 + ln count) x idf, in rows of length 1.
///
/// The roundings are those of scikit-learn: products in single precision, sums in double.
pub fn weigh(
    starts: &[i64],
    columns: &[i32],
    values: &mut [f32],
    idf: Option<&[f64]>,
) -> Result<()> {
    let misfit = || Error::data("rows, columns, values and idf weights do not fit together");
    for (value, &column) in values.iter_mut().zip(columns) {
        *value += 1.0;
        if let Some(idf) = idf {
            let weight = idf.get(column as usize).ok_or_else(misfit)?;
            *value = (f64::from(*value) * weight) as f32;
        }
    }
    for ends in starts.windows(2) {
        let span = ends[0] as usize..ends[1] as usize;
        let row = values.get_mut(span).ok_or_else(misfit)?;
        let squares = row.iter().map(|value| f64::from(value * value));
        let length = squares.sum::<f64>().sqrt();
        row.iter_mut()
            .for_each(|value| *value = (f64::from(*value) / length) as f32);
    }
    Ok(())
}

/// Returns the 32-bit MurmurHash3 with seed 0.
fn murmur3(bytes: &[u8]) -> u32 {
    let mix = |block: u32| {
        let block = block.wrapping_mul(0xcc9e_2d51).rotate_left(15);
        block.wrapping_mul(0x1b87_3593)
    };
    let mut hash = 0_u32;
    let (blocks, rest) = bytes.as_chunks();
    for block in blocks {
        hash = (hash ^ mix(u32::from_le_bytes(*block))).rotate_left(13);
        hash = hash.wrapping_mul(5).wrapping_add(0xe654_6b64);
    }
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    hash ^= mix(u32::from_le_bytes(last));
    hash ^= bytes.len() as u32;
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [Kind; 2] = [Kind::Words(2), Kind::Characters(2, 3)];

    fn ngrams(text: &str, kind: Kind) -> Vec<String> {
        let mut words = Words::default();
        words.read(text);
        let mut found = Vec::new();
        words.for_each(kind, |ngram| {
            found.push(String::from_utf8_lossy(ngram).into_owned());
        });
        found
    }

    #[test]
    fn words_are_runs_of_letters_digits_and_underscores() {
        let words = ngrams("It's 2_x, (It)", Kind::Words(1));
        assert_eq!(words, ["it", "s", "2_x", "it"]);
        assert_eq!(
            ngrams("a b c", Kind::Words(3)),
            ["a", "b", "c", "a b", "b c", "a b c"]
        );
        assert_eq!(ngrams("a", Kind::Words(3)), ["a"]);
        assert_eq!(ngrams(" ?!", Kind::Words(2)), [""; 0]);
    }

    #[test]
    fn character_ngrams_end_at_words_and_do_not_split_characters() {
        let found = ngrams("äb c", Kind::Characters(2, 5));
        let expected = [" ä", "äb", "b ", " äb", "äb ", " äb ", " c", "c ", " c "];
        assert_eq!(found, expected);
        assert_eq!(ngrams("é", Kind::Characters(1, 1)), [" ", "é", " "]);
        // A word shorter than the shortest n-gram counts once.
        assert_eq!(ngrams("a", Kind::Characters(5, 9)), [" a "]);
    }

    #[test]
    fn hashes_are_those_of_murmur3() {
        let known = [("", 0), ("foo", 0xf6a5_c420), ("hello", 0x248b_fa47)];
        for (text, hash) in known {
            assert_eq!(murmur3(text.as_bytes()), hash, "{text}");
        }
        assert_eq!(
            murmur3(b"The quick brown fox jumps over the lazy dog"),
            0x2e4f_f723
        );
    }

    #[test]
    fn vocabularies_are_sorted_and_leave_out_rare_ngrams() {
        let texts = ["b a b", "a c", "a b"];
        let learned = |min_df| NgramCounter::learned(&KINDS[..1], &texts, min_df, &Control::new(0));
        let counter = learned(2).unwrap();
        assert_eq!(counter.vocabularies(), [[&b"a"[..], b"a b", b"b"]]);
        let counts = counter.count(&texts, 1, &Control::new(0)).unwrap();
        assert_eq!(counts.starts, [0, 3, 4, 7]);
        assert_eq!(counts.columns, [0, 1, 2, 0, 0, 1, 2]);
        assert_eq!(counts.values, [1.0, 1.0, 2.0, 1.0, 1.0, 1.0, 1.0]);
        let error = learned(4).unwrap_err().to_string();
        assert_eq!(
            error,
            "min_df must be at most 3, as otherwise no terms remain, got 4"
        );
    }

    #[test]
    fn counts_do_not_depend_on_threads_or_on_how_the_counter_came_to_be() {
        let texts: Vec<String> = (0..3 * BLOCK + 7)
            .map(|i| format!("text {i} of {} WORDS", i % 10))
            .collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let control = Control::new(0);
        let learned = NgramCounter::learned(&KINDS, &texts, 1, &control).unwrap();
        let again = NgramCounter::known(&KINDS, learned.vocabularies()).unwrap();
        let hashed = NgramCounter::hashed(&KINDS, 6).unwrap();
        assert_eq!(hashed.n_columns(), 128);
        let expected = learned.count(&texts, 1, &control).unwrap();
        assert_eq!(again.count(&texts, 3, &control).unwrap(), expected);
        for counter in [&learned, &hashed] {
            let counts = counter.count(&texts, 1, &control).unwrap();
            assert_eq!(counter.count(&texts, 3, &control).unwrap(), counts);
            assert_eq!(counts.starts.len(), texts.len() + 1);
            for ends in counts.starts.windows(2) {
                let row = &counts.columns[ends[0] as usize..ends[1] as usize];
                assert!(row.is_sorted_by(|a, b| a < b), "{row:?}");
            }
            assert!(counts
                .columns
                .iter()
                .all(|&at| (at as usize) < counter.n_columns()));
        }
        control.stop();
        assert!(matches!(
            learned.count(&texts, 1, &control),
            Err(Error::Stopped)
        ));
    }

    #[test]
    fn rows_have_length_1_and_empty_rows_stay_empty() {
        let mut values = [0.0, 2_f32.ln(), 0.0];
        weigh(&[0, 2, 2, 3], &[0, 1, 1], &mut values, Some(&[3.0, 1.0])).unwrap();
        let second = 1.0 + 2_f64.ln();
        let length = (9.0 + second * second).sqrt();
        for (value, expected) in values.iter().zip([3.0 / length, second / length, 1.0]) {
            assert!((f64::from(*value) - expected).abs() < 1e-7);
        }
    }

    #[test]
    fn what_does_not_fit_together_is_refused() {
        let twice = [[&b"a"[..], b"a"]];
        let error = NgramCounter::known(&KINDS, twice).unwrap_err().to_string();
        assert_eq!(error, "a vocabulary contains a word twice");
        assert!(NgramCounter::hashed(&KINDS, 31).is_err());
        assert!(weigh(&[0, 2], &[0], &mut [0.0], None).is_err());
        assert!(weigh(&[0, 1], &[1], &mut [0.0], Some(&[1.0])).is_err());
        assert!(weigh(&[0, 1], &[-1], &mut [0.0], Some(&[1.0])).is_err());
    }
}
