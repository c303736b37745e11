//! Reading numbers out of bytes, eight digits at a time.
//!
//! A text of examples is nearly all digits, in runs of one to nine. A loop
//! over single digits mispredicts its end on nearly every run; here a run of
//! up to eight is found and evaluated without a branch.

/// A place in a block of text. Beyond the block's end there are line ends.
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    /// Bytes passed so far.
    pub at: usize,
}

/// How much of an offending token a message quotes.
const QUOTED: usize = 40;

const POW10: [u64; 19] = {
    let mut powers = [1u64; 19];
    let mut k = 1;
    while k < 19 {
        powers[k] = powers[k - 1] * 10;
        k += 1;
    }
    powers
};

/// All exact: ten to the 22nd is the first power that f64 must round.
const POW10_F64: [f64; 19] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18,
];

/// The value and length of the run of digits at the start of eight bytes
/// (the first byte lowest).
#[inline]
fn leading_digits(bytes: u64) -> (u64, usize) {
    const ASCII_ZEROS: u64 = 0x3030_3030_3030_3030;
    const TO_HIGH_BIT: u64 = 0x7676_7676_7676_7676;
    const HIGH_BITS: u64 = 0x8080_8080_8080_8080;
    const EVEN: u64 = 0x0000_00ff_0000_00ff;
    let digits = bytes ^ ASCII_ZEROS;
    // A byte above 9 gets its high bit set. A carry can spoil only the bytes
    // after such a one, and only the first such byte matters.
    let others = (digits.wrapping_add(TO_HIGH_BIT) | digits) & HIGH_BITS;
    let n = (others.trailing_zeros() / 8) as usize;
    if n == 0 {
        return (0, 0);
    }
    // Push the non-digits out at the top; zeros come in as leading digits.
    let digits = digits << (64 - 8 * n);
    // Pairs, then fours, then all eight.
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8);
    let high = (pairs & EVEN).wrapping_mul(100 + (1_000_000 << 32));
    let low = ((pairs >> 16) & EVEN).wrapping_mul(1 + (10_000 << 32));
    (high.wrapping_add(low) >> 32, n)
}

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    /// Whether the whole block is read.
    pub fn is_done(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// The next byte.
    #[inline]
    pub fn peek(&self) -> u8 {
        self.bytes.get(self.at).copied().unwrap_or(b'\n')
    }

    /// Steps over one byte.
    #[inline]
    pub fn bump(&mut self) {
        self.at += 1;
    }

    /// Whether the text goes on with `prefix`.
    pub fn sees(&self, prefix: &[u8]) -> bool {
        self.bytes
            .get(self.at..)
            .is_some_and(|rest| rest.starts_with(prefix))
    }

    /// Steps over spaces, tabs and the `\r` of `\r\n`.
    #[inline]
    pub fn skip_blanks(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\r') {
            self.at += 1;
        }
    }

    /// Steps beyond the end of the line.
    pub fn skip_line(&mut self) {
        while self.peek() != b'\n' {
            self.at += 1;
        }
        self.at += 1;
    }

    /// Steps over everything up to a blank or the line's end.
    pub fn skip_token(&mut self) {
        while !self.at_blank() {
            self.at += 1;
        }
    }

    /// Whether a token ends here.
    #[inline]
    pub fn at_blank(&self) -> bool {
        matches!(self.peek(), b' ' | b'\t' | b'\r' | b'\n')
    }

    /// The token that begins at `from`, for a message: printable, not too long.
    pub fn quote(&self, from: usize) -> String {
        let mut end = Cursor::new(self.bytes, from);
        end.skip_token();
        let token = &self.bytes[from.min(self.bytes.len())..end.at.min(self.bytes.len())];
        let shown = token.len().min(QUOTED);
        let more = if shown < token.len() { "..." } else { "" };
        format!("'{}{more}'", token[..shown].escape_ascii())
    }

    /// What the line has from `from` on.
    pub fn line_from(&self, from: usize) -> &'a [u8] {
        let rest = self.bytes.get(from..).unwrap_or_default();
        let end = rest.iter().position(|&byte| byte == b'\n');
        rest[..end.unwrap_or(rest.len())].trim_ascii()
    }

    #[inline]
    fn eight(&self) -> u64 {
        let Some(&eight) = self.bytes.get(self.at..).and_then(<[u8]>::first_chunk) else {
            return self.last_eight();
        };
        u64::from_le_bytes(eight)
    }

    #[cold]
    fn last_eight(&self) -> u64 {
        let mut eight = [b'\n'; 8];
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        eight[..rest.len()].copy_from_slice(rest);
        u64::from_le_bytes(eight)
    }

    /// A run of digits: its value, saturated, and its length (0 if there is none).
    #[inline]
    pub fn digits(&mut self) -> (u64, usize) {
        let (mut value, mut length) = leading_digits(self.eight());
        self.at += length;
        if length == 8 {
            loop {
                let (more, n) = leading_digits(self.eight());
                self.at += n;
                length += n;
                value = value.saturating_mul(POW10[n]).saturating_add(more);
                if n < 8 {
                    break;
                }
            }
        }
        (value, length)
    }

    /// Sign, mantissa and number of decimals of a plain decimal of at most 18
    /// digits, `None` for anything else (then the cursor may stand anywhere).
    #[inline]
    fn decimal(&mut self) -> Option<(bool, i64, usize)> {
        let negative = self.peek() == b'-';
        if negative || self.peek() == b'+' {
            self.at += 1;
        }
        let (whole, n_whole) = self.digits();
        let (mut decimals, mut n_decimals) = (0, 0);
        if self.peek() == b'.' {
            self.at += 1;
            (decimals, n_decimals) = self.digits();
        }
        let n = n_whole + n_decimals;
        if n == 0 || n > 18 || matches!(self.peek(), b'e' | b'E') {
            return None;
        }
        let mantissa = whole * POW10[n_decimals] + decimals;
        Some((negative, mantissa as i64, n_decimals))
    }

    /// A finite number as the nearest f32.
    #[inline]
    pub fn float(&mut self) -> Result<f32, String> {
        let from = self.at;
        if let Some((negative, mantissa, decimals)) = self.decimal() {
            // Conversion and division are each off by half a unit of f64 at
            // most. Rounding to f32 is then right unless the quotient lies
            // within two units of the middle between two floats.
            const MIDDLE: i64 = 1 << 28;
            let value = mantissa as f64 / POW10_F64[decimals];
            let below = (value.to_bits() & 0x1fff_ffff) as i64;
            if (below - MIDDLE).abs() > 2 {
                let value = value as f32;
                return Ok(if negative { -value } else { value });
            }
        }
        self.rare(from, "float32", |value: f32| value.is_finite())
    }

    /// A finite number as the nearest f64.
    #[inline]
    pub fn double(&mut self) -> Result<f64, String> {
        let from = self.at;
        if let Some((negative, mantissa, decimals)) = self.decimal() {
            // Mantissa and power are exact, so the one division rounds once.
            if mantissa <= 1 << 53 {
                let value = mantissa as f64 / POW10_F64[decimals];
                return Ok(if negative { -value } else { value });
            }
        }
        self.rare(from, "float64", |value: f64| value.is_finite())
    }

    /// Whether the text from `from` to here is an integer that `value`, read from it, is not.
    pub fn has_rounded(&self, from: usize, value: f64) -> bool {
        let digits = self.bytes[from..self.at].strip_prefix(b"+");
        let digits = digits.unwrap_or(&self.bytes[from..self.at]);
        let is_integer = digits.iter().all(|byte| matches!(byte, b'-' | b'0'..=b'9'));
        // The shortest text that is `value` may be another integer; this one is `value` itself.
        is_integer && format!("{value:.0}").as_bytes() != digits
    }

    /// Long numbers, exponents, and everything that is no number.
    #[cold]
    fn rare<F: fast_float2::FastFloat>(
        &mut self,
        from: usize,
        kind: &str,
        finite: impl Fn(F) -> bool,
    ) -> Result<F, String> {
        let rest = self.bytes.get(from..).unwrap_or_default();
        let Ok((value, length)) = fast_float2::parse_partial::<F, _>(rest) else {
            return Err(format!("{} is not a number", self.quote(from)));
        };
        if !finite(value) {
            return Err(if rest[..length].iter().any(u8::is_ascii_digit) {
                format!("{} is too large for {kind}", self.quote(from))
            } else {
                format!("{}: all values must be finite", self.quote(from))
            });
        }
        self.at = from + length;
        Ok(value)
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
    fn numbers_that_are_none_are_quoted() {
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
        // The standard library is the reference, in the forms it can print.
        #[test]
        fn floats_are_the_nearest(bits: u32) {
            let value = f32::from_bits(bits);
            prop_assume!(value.is_finite());
            for text in [format!("{value}"), format!("{value:e}"), format!("{value:.9}")] {
                let read = Cursor::new(text.as_bytes(), 0).float().unwrap();
                prop_assert_eq!(read.to_bits(), text.parse::<f32>().unwrap().to_bits());
            }
        }

        #[test]
        fn decimals_are_the_nearest(text in "[-+]?[0-9]{1,12}(\\.[0-9]{0,12})?") {
            let read = Cursor::new(text.as_bytes(), 0).float().unwrap();
            prop_assert_eq!(read.to_bits(), text.parse::<f32>().unwrap().to_bits());
            let read = Cursor::new(text.as_bytes(), 0).double().unwrap();
            prop_assert_eq!(read.to_bits(), text.parse::<f64>().unwrap().to_bits());
        }

        // Numbers that stand next to the middle between two floats.
        #[test]
        fn middles_are_the_nearest(whole in 0u64..(1 << 30), tail in "[0-9]{0,6}") {
            let middle = f64::from((1u32 << 24) + (whole % 1024) as u32 * 2 + 1) / 1024.0;
            let text = format!("{middle}{tail}");
            let read = Cursor::new(text.as_bytes(), 0).float().unwrap();
            prop_assert_eq!(read.to_bits(), text.parse::<f32>().unwrap().to_bits());
        }
    }
}
