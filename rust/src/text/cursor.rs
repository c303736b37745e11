//! A position in a block of text, and the numbers read from there.

/// A position in a block of text. Every byte beyond the end of the block reads as a line end.
pub struct Cursor<'a> {
    bytes: &'a [u8],
    /// Bytes passed so far.
    pub at: usize,
}

/// Bytes of an offending token that a message quotes.
const MAX_QUOTED_BYTES: usize = 40;

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    /// True at the end of the block.
    pub fn is_done(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// Returns the next byte.
    pub fn peek(&self) -> u8 {
        self.bytes.get(self.at).copied().unwrap_or(b'\n')
    }

    /// Skips one byte.
    pub fn bump(&mut self) {
        self.at += 1;
    }

    /// True if the text continues with `prefix`.
    pub fn sees(&self, prefix: &[u8]) -> bool {
        self.bytes
            .get(self.at..)
            .is_some_and(|rest| rest.starts_with(prefix))
    }

    /// Skips spaces, tabs and the `\r` of `\r\n`.
    pub fn skip_blanks(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\r') {
            self.at += 1;
        }
    }

    /// Skips the rest of the line and its end.
    pub fn skip_line(&mut self) {
        while self.peek() != b'\n' {
            self.at += 1;
        }
        self.at += 1;
    }

    /// Skips everything up to a blank or the end of the line.
    pub fn skip_token(&mut self) {
        while !self.at_blank() {
            self.at += 1;
        }
    }

    /// True where a token ends.
    pub fn at_blank(&self) -> bool {
        matches!(self.peek(), b' ' | b'\t' | b'\r' | b'\n')
    }

    /// Quotes the token that begins at `from` for a message: escaped, and cut if it is long.
    pub fn quote(&self, from: usize) -> String {
        let mut end = Cursor::new(self.bytes, from);
        end.skip_token();
        let token = &self.bytes[from.min(self.bytes.len())..end.at.min(self.bytes.len())];
        let shown = token.len().min(MAX_QUOTED_BYTES);
        let more = if shown < token.len() { "..." } else { "" };
        format!("'{}{more}'", token[..shown].escape_ascii())
    }

    /// Returns the line from the position `from` on.
    pub fn line_from(&self, from: usize) -> &'a [u8] {
        let rest = self.bytes.get(from..).unwrap_or_default();
        let end = rest.iter().position(|&byte| byte == b'\n');
        rest[..end.unwrap_or(rest.len())].trim_ascii()
    }

    /// Reads digits and returns their value, saturated, and their number, which may be 0.
    pub fn digits(&mut self) -> (u64, usize) {
        let (mut value, from) = (0u64, self.at);
        while let digit @ b'0'..=b'9' = self.peek() {
            value = value
                .saturating_mul(10)
                .saturating_add(u64::from(digit - b'0'));
            self.at += 1;
        }
        (value, self.at - from)
    }

    /// Reads a finite number as the nearest f32.
    pub fn float(&mut self) -> Result<f32, String> {
        self.number("float32", f32::is_finite)
    }

    /// Reads a finite number as the nearest f64.
    pub fn double(&mut self) -> Result<f64, String> {
        self.number("float64", f64::is_finite)
    }

    fn number<F: fast_float2::FastFloat>(
        &mut self,
        kind: &str,
        is_finite: impl Fn(F) -> bool,
    ) -> Result<F, String> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        match fast_float2::parse_partial::<F, _>(rest) {
            Ok((value, length)) if is_finite(value) => {
                self.at += length;
                Ok(value)
            }
            Ok((_, length)) if rest[..length].iter().any(u8::is_ascii_digit) => {
                Err(format!("{} is too large for {kind}", self.quote(self.at)))
            }
            Ok(_) => Err(format!(
                "{}: all values must be finite",
                self.quote(self.at)
            )),
            Err(_) => Err(format!("{} is not a number", self.quote(self.at))),
        }
    }

    /// True if the text between `from` and the current position is an integer that differs from
    /// `value`, the number read from it.
    pub fn has_rounded(&self, from: usize, value: f64) -> bool {
        let digits = self.bytes[from..self.at].strip_prefix(b"+");
        let digits = digits.unwrap_or(&self.bytes[from..self.at]);
        let is_integer = digits.iter().all(|byte| matches!(byte, b'-' | b'0'..=b'9'));
        // Without ".0" the last digits of a large value would be printed as zeros.
        is_integer && format!("{value:.0}").as_bytes() != digits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn digits_of_any_length() {
        for (text, value, length) in [
            ("", 0, 0),
            ("x1", 0, 0),
            ("7", 7, 1),
            ("0042:", 42, 4),
            ("12345678", 12_345_678, 8),
            ("123456789 ", 123_456_789, 9),
            ("1234567890123456:", 1_234_567_890_123_456, 16),
            ("99999999999999999999999", u64::MAX, 23),
            ("12\u{fa}4", 12, 2),
        ] {
            let mut cursor = Cursor::new(text.as_bytes(), 0);
            assert_eq!(cursor.digits(), (value, length), "{text}");
            assert_eq!(cursor.at, length);
        }
    }

    #[test]
    fn invalid_numbers_are_quoted() {
        for (text, expected) in [
            ("", "'' is not a number"),
            ("-", "'-' is not a number"),
            (".", "'.' is not a number"),
            ("abc 1", "'abc' is not a number"),
            ("\u{1}\u{ff}", "is not a number"),
            ("nan", "'nan': all values must be finite"),
            ("-inf", "'-inf': all values must be finite"),
            ("1e39", "'1e39' is too large for float32"),
            ("340282366920938463463374607431768211456", "is too large"),
        ] {
            let message = Cursor::new(text.as_bytes(), 0).float().unwrap_err();
            assert!(message.contains(expected), "{message:?} lacks {expected:?}");
        }
    }

    proptest! {
        // Reference: the parser of the standard library.
        #[test]
        fn decimals_are_the_nearest(text in "[-+]?[0-9]{1,12}(\\.[0-9]{0,12})?(e-?[0-9])?") {
            let read = Cursor::new(text.as_bytes(), 0).float().unwrap();
            prop_assert_eq!(read.to_bits(), text.parse::<f32>().unwrap().to_bits());
            let read = Cursor::new(text.as_bytes(), 0).double().unwrap();
            prop_assert_eq!(read.to_bits(), text.parse::<f64>().unwrap().to_bits());
        }
    }
}
