"""The programs with their settings, and what each is not run on."""

from dataclasses import dataclass, field

#: Kinds of tasks: sparse rows with one label each, with label sets, tables of numbers.
CLASSES, SETS, TABLE = "one label a row", "label sets", "tables"
#: Weights of all classes for all features must fit into so many bytes.
MOST_BYTES = 3e9
#: Classes up to which peers are tried that need minutes for each thousand of them.
MOST_LINEAR = 2_000
BOTH = CLASSES, TABLE


@dataclass(frozen=True)
class Program:
    """A program with its settings.

    Attributes
    ----------
    name : in tables
    package : whose version its figures depend on; None: this repository
    adapter : the module of ``adapters``
    settings : kind of task -> options
    why_not : kind of task -> why it is not run on that
    note : a sentence about the settings
    weight_bytes : per feature and class, of programs whose weights are dense
    most_classes : where training takes time linear in the classes, the most that are tried
    needs_words : whether features are words, so that their values do not count
    """

    name: str
    package: str | None
    adapter: str
    settings: dict = field(default_factory=dict)
    why_not: dict = field(default_factory=dict)
    note: str = ""
    weight_bytes: float = 0
    most_classes: float = float("inf")
    needs_words: bool = False

    def refusal(self, task, shape=None):
        """Why a task is not run, or None; what depends on its shape is asked when that is known."""
        if task.kind in self.why_not:
            return self.why_not[task.kind]
        if self.needs_words and not task.words:
            return "reads words: the values of features would be lost"
        if shape is None:
            return None
        _, n_features, n_classes = shape
        if n_classes > self.most_classes:
            return f"training time is linear in the classes: tried up to {self.most_classes:,.0f}"
        needed = n_features * n_classes * self.weight_bytes
        if needed > MOST_BYTES:
            return f"dense weights would take {needed / 1e9:.0f} GB"
        return None


#: Those of ours that calibrate scores by default, which no peer does for one label a row.
CALIBRATED = ("OAA", "LOMTree", "RecallTree", "FilterTree")
PLAIN = {"calibrate": False}
ONE_LABEL_ALONE = "one label a row alone"
NO_TABLES = "sparse linear models for very many labels: not meant for small tables of numbers"
UNCALIBRATED = "uncalibrated, as the peers' scores are"
OF_OAA = f"{UNCALIBRATED}; OAA is calibrated on label sets, as theirs are probabilities"

OF_ONE_LABEL = {SETS: ONE_LABEL_ALONE}
OF_SETS = {CLASSES: "for label sets", TABLE: NO_TABLES}
LINEAR = {TABLE: "linear: tree ensembles of scikit-learn stand for it"}
OF_TABLES = {
    CLASSES: "boosts or grows trees on tables: not meant for tens of thousands of sparse columns",
    SETS: ONE_LABEL_ALONE,
}
NO_TABLE = {TABLE: NO_TABLES}
FASTTEXT_THREADS = "ten threads on the cores of the others, with fewer it fails (its issue 1061)"
WORDS = {TABLE: "reads words: the values of features would be lost"}


def ours(name, estimator, kinds, why_not, note="", weight_bytes=0, **options):
    settings = {kind: {"estimator": estimator} | options for kind in kinds}
    if estimator in CALIBRATED:
        settings |= {kind: settings[kind] | PLAIN for kind in BOTH}
        note = note or UNCALIBRATED
    return Program(
        f"xmtree {name}", None, "ours", settings, why_not, note, weight_bytes=weight_bytes
    )


def vowpal(learner, kinds, why_not, most_classes=float("inf"), **options):
    settings = {kind: {"learner": learner, "passes": 5} | options for kind in kinds}
    note = "2^18 to 2^24 weights, by features times classes; learns in one thread, another reads"
    package = "vowpalwabbit"
    return Program(
        f"VW --{learner}", package, "vowpal", settings, why_not, note, most_classes=most_classes
    )


def scikit(name, kinds, why_not, note="", most_classes=float("inf"), **options):
    settings = {kind: {"estimator": name} | options for kind in kinds}
    linear = 8 if CLASSES in kinds or SETS in kinds else 0
    return Program(
        f"scikit-learn {name}",
        "scikit-learn",
        "scikit",
        settings,
        why_not,
        note,
        weight_bytes=linear,
        most_classes=most_classes,
    )


PROGRAMS = (
    ours("OAA", "OAA", (*BOTH, SETS), {}, OF_OAA, 8),
    ours("LOMtree", "LOMTree", BOTH, OF_ONE_LABEL),
    ours("10 LOMtrees", "LOMTree", BOTH, OF_ONE_LABEL, n_estimators=10),
    ours("Recall Tree", "RecallTree", BOTH, OF_ONE_LABEL),
    ours("filter tree", "FilterTree", BOTH, OF_ONE_LABEL),
    ours("LdSM", "LdSM", (SETS, CLASSES), NO_TABLE),
    ours(
        "GAMBLE",
        "Gamble",
        (TABLE,),
        {CLASSES: "boosts trees: not meant for text", SETS: ONE_LABEL_ALONE},
    ),
    vowpal("oaa", BOTH, OF_ONE_LABEL, MOST_LINEAR, loss_function="logistic"),
    vowpal("log_multi", BOTH, OF_ONE_LABEL),
    vowpal("recall_tree", BOTH, OF_ONE_LABEL),
    vowpal("ect", BOTH, OF_ONE_LABEL),
    vowpal("plt", (SETS,), OF_SETS),
    Program(
        "omikuji",
        "omikuji",
        "omikuji",
        {CLASSES: {}, SETS: {}},
        NO_TABLE,
        "three trees, the default; a batch row after row, its C interface has no other way",
    ),
    Program(
        "omikuji, collapsed",
        "omikuji",
        "omikuji",
        {CLASSES: {"collapse_every_n_layers": 5}, SETS: {"collapse_every_n_layers": 5}},
        NO_TABLE,
        "collapsed: wide, shallow trees, as Bonsai",
    ),
    Program(
        "napkinXC PLT",
        "napkinxc",
        "napkinxc",
        {SETS: {"model": "PLT"}},
        OF_SETS,
        "training includes writing the model, which it does as it goes",
    ),
    Program(
        "napkinXC HSM",
        "napkinxc",
        "napkinxc",
        {CLASSES: {"model": "HSM"}},
        OF_ONE_LABEL | NO_TABLE,
        "training includes writing the model, which it does as it goes",
    ),
    Program(
        "PECOS XLinear",
        "libpecos",
        "pecos",
        {CLASSES: {}, SETS: {}},
        NO_TABLE,
        "hierarchical 2-means over PIFA embeddings, else the defaults; rows brought to length 1",
    ),
    Program(
        "fastText",
        "fasttext",
        "fasttext",
        {CLASSES: {"lr": 0.5, "epoch": 25}, SETS: {"lr": 0.5, "epoch": 25}},
        WORDS,
        "as its tutorial, softmax; a feature is a word, whatever its value; " + FASTTEXT_THREADS,
        most_classes=MOST_LINEAR,
        needs_words=True,
    ),
    Program(
        "fastText, ova",
        "fasttext",
        "fasttext",
        {SETS: {"lr": 0.5, "epoch": 25, "loss": "ova"}},
        {CLASSES: "for label sets"} | WORDS,
        "ova: a sigmoid for each label",
        needs_words=True,
    ),
    Program(
        "fastText, hierarchical",
        "fasttext",
        "fasttext",
        {CLASSES: {"lr": 0.5, "epoch": 25, "loss": "hs"}},
        {SETS: "as fastText"} | WORDS,
        "hierarchical: a hierarchical softmax",
        needs_words=True,
    ),
    scikit(
        "SGDClassifier",
        (CLASSES,),
        OF_ONE_LABEL | LINEAR,
        most_classes=MOST_LINEAR,
    ),
    scikit(
        "LinearSVC",
        (CLASSES,),
        {SETS: "as OneVsRestClassifier"} | LINEAR,
        "LinearSVC trains in one thread",
        MOST_LINEAR,
    ),
    scikit(
        "OneVsRestClassifier(LinearSVC)",
        (SETS,),
        {CLASSES: "as LinearSVC"} | LINEAR,
        most_classes=MOST_LINEAR,
    ),
    scikit("HistGradientBoostingClassifier", (TABLE,), OF_TABLES),
    scikit("RandomForestClassifier", (TABLE,), OF_TABLES),
    Program("LightGBM", "lightgbm", "lightgbm", {TABLE: {}}, OF_TABLES),
)
