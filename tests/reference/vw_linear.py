"""Slow reference of Vowpal Wabbit's default online linear learner.

Source: the normalized (NAG: Ross, Mineiro, Langford, UAI 2013), adaptive
(AdaGrad: Duchi, Hazan, Singer 2011) and importance aware (Karampatziakis,
Langford, UAI 2011) update as VW 9.11 combines them by default.  The step numbers
in the comments are those of "VW's default learner" in the design notes:

1. p = w.x clamped;  2. no loss, no update;  3. G += h (dL/dp)^2 x^2;
4. new scale: shrink the weight;  5. N, t, M, rate, ppu;  6. u and the weights.

Written to be read and to be equal to VW *bit for bit* (checked in
``tests/test_reference_vw.py`` on scores, not only on predictions), hence:

* all arithmetic is float32 and every sum runs over the features in the order in
  which they were given, the constant feature last, except where a comment says
  otherwise.  ``np.cumsum(..., dtype=float32)`` adds strictly from left to right
  (``np.sum`` does not);
* ``np.exp`` of a float32 array may be one unit off the C library's ``expf``, so
  exponentials are taken in float64 and rounded;
* 1/sqrt(G) is the true quotient.  (VW's source may use the processor's
  approximate ``rsqrtss``, relative error 4e-4, when it is compiled from source
  for x86; the wheels on PyPI, which the golden files come from, do not.)

One :class:`VWLinear` holds several predictors.  They share the clamp [lo, hi];
everything else, including t and N, is each predictor's own.
"""

import numpy as np

F = np.float32

# The smallest |x| VW distinguishes from 0 when it squares a value, 2^-63.
X_MIN = F(1.084202e-19)


def exp32(a):
    """Return ``expf``: the exponential of float32 values, rounded once."""
    return np.exp(np.asarray(a, dtype=np.float64)).astype(F)


def ordered_sum(a):
    """Return the sum along the last axis in float32, strictly from left to right."""
    return np.cumsum(a, axis=-1, dtype=F)[..., -1]


class Squared:
    """Squared loss (y - p)^2."""

    def loss(self, p, y):
        return (p - y) * (p - y)

    def gradient_squared(self, p, y):
        return F(4) * (p - y) * (p - y)

    def step(self, p, y, a, ppu):
        """Return U of step 6 in closed form, or to first order where that would cancel."""
        apu = (a * ppu).astype(F)
        exact = (y - p) * (F(1) - exp32(F(-2) * a * ppu)) / ppu
        small = F(2) * (y - p) * a
        return np.where(apu.astype(np.float64) < 1e-6, small, exact)


class Quantile:
    """Quantile loss: tau (y - p) above, (1 - tau) (p - y) below."""

    def __init__(self, tau=0.5):
        self.tau = F(tau)

    def loss(self, p, y):
        e = y - p
        return np.where(e > 0, self.tau * e, -(F(1) - self.tau) * e)

    def gradient_squared(self, p, y):
        """Return tau^2 above, (1 - tau)^2 below, 0 at equality."""
        e = y - p
        d = np.where(e > 0, -self.tau, F(1) - self.tau)
        return np.where(e == 0, F(0), d * d)

    def step(self, p, y, a, ppu):
        """Walk a tau (or a (1 - tau)) towards y, and never past it."""
        e = y - p
        up = np.where(self.tau * (a * ppu) < e, self.tau * a, e / ppu)
        down = np.where(-(F(1) - self.tau) * (a * ppu) > e, (self.tau - F(1)) * a, e / ppu)
        return np.where(e == 0, F(0), np.where(e > 0, up, down))


class Hinge:
    """Hinge loss max(0, 1 - y p).

    With labels -1/+1 and the clamp at [-1, 1] this and quantile loss with tau = 1/2
    move the weights identically: half the gradient doubles rate and ppu, exactly.
    """

    def loss(self, p, y):
        return np.maximum(F(1) - y * p, F(0))

    def gradient_squared(self, p, y):
        return np.where(y * p >= 1, F(0), y * y)

    def step(self, p, y, a, ppu):
        gap = F(1) - y * p
        return np.where(y * p >= 1, F(0), y * np.where(a * ppu < gap, a, gap / ppu))


class Logistic:
    """Logistic loss log(1 + exp(-y p))."""

    def loss(self, p, y):
        return np.log(F(1) + exp32(-y * p))

    def gradient_squared(self, p, y):
        d = -y / (F(1) + exp32(y * p))
        return d * d

    def step(self, p, y, a, ppu):
        d = exp32(y * p)
        apu = (a * ppu).astype(F)
        small = y * a / (F(1) + d)
        exact = -(y * self.lambert(apu + y * p + d) + p) / ppu
        return np.where(apu.astype(np.float64) < 1e-6, small, exact)

    @staticmethod
    def lambert(z):
        """Return LambertW(e^z) - z in float64: a guess and one third-order correction.

        VW documents an error below 9e-5.  That is far above float32's rounding,
        so a better approximation of W is *not* bit-identical to VW.
        """
        x = np.asarray(z, dtype=np.float64)
        big = x >= 1
        w = np.where(big, 0.86 * x + 0.01, np.exp(0.8 * np.minimum(x, 1) - 0.65))
        # The logarithm is needed for x >= 1 only; below, log(w) = 0.8 x - 0.65 is known.
        r = np.where(big, x - np.log(np.where(big, w, 1.0)) - w, 0.2 * x + 0.65 - w)
        t = 1 + w
        u = 2 * t * (t + 2 * r / 3)
        return (w * (1 + r / t * (u - r) / (u - 2 * r)) - x).astype(F)


LOSSES = {"squared": Squared, "quantile": Quantile, "logistic": Logistic, "hinge": Hinge}


class VWLinear:
    """``n_predictors`` linear regressors with VW's default update.

    Parameters are VW's: ``eta`` is ``--learning_rate``, ``tau`` is
    ``--quantile_tau``.  Rows of ``w, G, s`` are predictors; the last column is the
    constant feature.  A row of x is given as (indices, values) without zeros.
    """

    def __init__(self, n_predictors, n_features, loss="squared", eta=0.5, tau=0.5):
        self.loss = Quantile(tau) if loss == "quantile" else LOSSES[loss]()
        self.eta = F(eta)
        shape = (n_predictors, n_features + 1)
        self.w, self.G, self.s = (np.zeros(shape, F) for _ in range(3))
        self.t, self.N = np.zeros(n_predictors), np.zeros(n_predictors)  # float64
        # VW stretches [lo, hi] to the labels it learns; logistic loss fixes it.
        self.lo, self.hi = (F(-50), F(50)) if loss == "logistic" else (F(0), F(0))

    @staticmethod
    def with_constant(idx, x):
        """Return the row with the constant feature 1 as the last one (index -1)."""
        return np.concatenate([idx, [-1]]), np.concatenate([x, [1]]).astype(F)

    def score(self, rows, idx, x):
        """Return step 1, unclamped: VW's partial prediction of each predictor in ``rows``."""
        idx, x = self.with_constant(idx, x)
        return ordered_sum(self.w[np.asarray(rows)[:, None], idx] * x)

    def clamp(self, score):
        """Return the score of step 1, clamped to the current [lo, hi]."""
        return np.minimum(np.maximum(score, self.lo), self.hi)

    def widen(self, y):
        """Stretch the clamp to label ``y``."""
        self.lo, self.hi = min(self.lo, F(y)), max(self.hi, F(y))

    def update(self, rows, idx, x, y, h, p):
        """Run steps 2 to 6 for the predictors ``rows`` with labels y and clamped scores p.

        ``rows`` may hold several (distinct) predictors: they do not interact.
        """
        rows, y, p, h = np.asarray(rows), np.asarray(y, F), np.asarray(p, F), F(h)
        g2 = h * self.loss.gradient_squared(p, y)
        active = (self.loss.loss(p, y) > 0) & (g2 != 0)  # step 2; and weight 0
        rows, y, p, g2 = rows[active], y[active], p[active], g2[active]
        if len(rows) == 0:
            return
        idx, x = self.with_constant(idx, x)
        at = rows[:, None], idx
        tiny = np.abs(x) < X_MIN
        ax = np.where(tiny, X_MIN, np.abs(x))
        x2 = ax * ax

        self.G[at] += g2[:, None] * x2  # step 3

        w, s = self.w[at], self.s[at]  # step 4
        grown = ax > s
        w = np.where(grown & (s > 0), w * (s / ax), w)
        s = np.where(grown, ax, s)
        self.s[at] = s

        self.N[rows] += float(h) * ordered_sum(x2 / (s * s)).astype(np.float64)  # step 5
        self.t[rows] += float(h)
        M = np.sqrt(self.t[rows].astype(F) / self.N[rows].astype(F))
        rate = (F(1) / np.sqrt(self.G[at])) * (F(1) / s)
        ppu = ordered_sum(x2 * rate) * M

        u = self.loss.step(p, y, self.eta * h, ppu).astype(F)  # step 6
        self.w[at] = w + (u * M)[:, None] * (x * rate)

    def learn(self, row, idx, x, y, h=1.0):
        """Learn one example by one predictor in VW's order: widen, predict, update."""
        self.widen(y)
        p = self.clamp(self.score([row], idx, x))
        self.update([row], idx, x, [y], h, p)
        return p[0]
