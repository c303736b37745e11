"""TextClassifier beside pipelines by hand, on texts; prints a table.

    python docs/experiments/scripts/text_accuracy.py DATA [NAME...]

Of the data sets NAME, by default of all; "length" measures the gain of idf by the length of texts.
DATA is a folder with the data sets, in folders of their names. They are stored as counts, so texts
are put together from these: where word pairs are counted, words come in an order that has just
these pairs, and where words alone are counted, in any order, and pairs are no features then. The
novels are texts: passages of 100 words, of which each author's last novel is for the test.
"""

import lzma
import re
import sys
import time
import warnings
from collections import Counter, defaultdict
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.pipeline import make_pipeline, make_union
from sklearn.svm import LinearSVC
from xmtree import LdSMClassifier, OAAClassifier, TextClassifier, pipeline_topk
from xmtree.datasets import load_xmc

SEEDS = range(3)
#: A word that no training text has: it stands where a test text goes on elsewhere.
GAP = "ƣ"
#: Data sets with pairs, and without; and one where characters take too long.
PAIRS = ("banking77", "naics2017-index", "onet-titles")
WORDS = ("news20-bydate", "makupalat")
LONG = ("news20-bydate",)
#: Words that are left of its texts, drawn from them, where the gain of idf is measured.
CUTS = (10, 20, 40, 80, 1_000_000)
#: More labels take LinearSVC too long.
MOST_LABELS_OF_SVC = 100


def sequence(words, pairs):
    """The words, in an order whose neighbours are ``pairs`` and, where these break off, GAP."""
    follow, before, after = defaultdict(list), Counter(), Counter()
    for (a, b), n in pairs.items():
        follow[a] += [b] * n
        after[a] += n
        before[b] += n
    # Where a word is the first or the last of a piece.
    for word, n in words.items():
        follow[GAP] += [word] * (n - before[word])
        follow[word] += [GAP] * (n - after[word])
    found = []
    for start in [GAP, *follow]:
        if not follow[start]:
            continue
        path, circuit = [start], []
        while path:
            if follow[path[-1]]:
                path.append(follow[path[-1]].pop())
            else:
                circuit.append(path.pop())
        found += [*reversed(circuit), GAP]
    return re.sub(rf"({GAP} )+", f"{GAP} ", " ".join(found)).strip(f"{GAP} ")


def rebuilt(counts, vocabulary, has_pairs):
    texts = []
    for row in counts:
        words, pairs = Counter(), Counter()
        for column, n in zip(row.indices, row.data.astype(int), strict=True):
            a, _, b = vocabulary[column].partition("_")
            if b:
                pairs[a, b] = n
            else:
                words[a] = n
        if has_pairs:
            texts.append(sequence(words, pairs))
        else:
            texts.append(" ".join(word for word, n in words.items() for _ in range(n)))
    return texts


def stored(folder, has_pairs):
    """Texts and labels of training and test rows; the training texts have the counts stored."""
    with lzma.open(folder / "vocab.txt.xz", "rt", encoding="utf-8") as file:
        vocabulary = file.read().splitlines()
    parts = []
    for name in ("train", "test"):
        X, y = load_xmc(folder / f"{name}.txt.xz")
        parts += [rebuilt(X, vocabulary, has_pairs), y]
        if name == "train":
            names = {word.replace("_", " "): at for at, word in enumerate(vocabulary)}
            counter = CountVectorizer(
                vocabulary=names, ngram_range=(1, 1 + has_pairs), token_pattern=r"\w+"
            )
            assert (counter.transform(parts[0]) != X).nnz == 0
    return parts


def novels(folder):
    """Passages and their authors, with the number of the novel among the author's."""
    corpus = lzma.decompress((folder / "corpus.txt.xz").read_bytes())
    lines = (folder / "files.tsv").read_text().splitlines()[1:]
    files = [line.split("\t")[:3] for line in lines]
    of_author, passages = Counter(), []
    for name, start, size in files:
        author = name.partition("_")[0]
        words = corpus[int(start) : int(start) + int(size)].decode().split()
        for at in np.linspace(2000, len(words) - 2000, 40).astype(int):
            passages.append((" ".join(words[at : at + 100]), author, of_author[author]))
        of_author[author] += 1
    texts, authors, numbers = map(np.array, zip(*passages, strict=True))
    whole = np.array([of_author[author] == 3 for author in authors])
    return texts[whole], authors[whole], numbers[whole]


def contenders(name, n_labels, n_words, seed):
    words = {"ngram_range": (1, n_words), "sublinear_tf": True}
    chars = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), sublinear_tf=True)
    tfidf = TfidfVectorizer(**words)
    text = {"word_ngrams": n_words, "random_state": seed}
    oaa = OAAClassifier(random_state=seed)
    default = TextClassifier(**text)
    yield "TextClassifier", default
    yield f"idf={not default.idf_}", TextClassifier(**text, idf=not default.idf_)
    yield "tf-idf, OAA", make_pipeline(tfidf, oaa)
    yield "tf-idf, LdSM", make_pipeline(tfidf, LdSMClassifier(random_state=seed))
    if n_labels <= MOST_LABELS_OF_SVC:
        yield "tf-idf, LinearSVC", make_pipeline(tfidf, LinearSVC(random_state=seed))
    if name not in LONG:
        yield "with characters", TextClassifier(**text, char_ngrams=(3, 5))
        yield "tf-idf and characters, OAA", make_pipeline(make_union(tfidf, chars), oaa)


def precision(model, texts, labels):
    """P@1 in per cent; of single labels the accuracy."""
    if isinstance(getattr(model, "steps", [[0]])[-1][-1], LinearSVC):
        return 100 * model.score(texts, labels)
    best = pipeline_topk(model, texts, 1)[0][:, 0]
    if labels.ndim == 1:
        return 100 * np.mean(best == labels)
    return 100 * np.mean(labels[np.arange(len(best)), best.astype(int)])


def measured(name, train, test, splits, n_words):
    (texts, labels), rows = train, {}
    n_labels = len(np.unique(labels)) if labels.ndim == 1 else labels.shape[1]
    for split in (*splits, None):
        part = (texts, labels, *test)
        if split is not None:
            learned, held_out = split
            part = texts[learned], labels[learned], texts[held_out], labels[held_out]
        seed = len(next(iter(rows.values()), [])) if split is not None else 0
        for title, model in contenders(name, n_labels, n_words, seed):
            start = time.process_time()
            model.fit(list(part[0]), part[1])
            took = time.process_time() - start
            found = precision(model, list(part[2]), part[3])
            rows.setdefault(title, []).append(found)
            print(f"{name:16} {title:28} {found:6.2f} {took:6.1f} s", flush=True)
    for title, found in rows.items():
        held_out = np.array(found[:-1])
        yield (
            f"| {name} | {title} | {held_out.mean():.1f} +- {held_out.std(ddof=1):.1f} "
            f"| {found[-1]:.1f} |"
        )


def stored_table(data, name):
    """The rows of a data set that is stored as counts."""
    X, y, X_test, y_test = stored(data / name, name in PAIRS)
    if hasattr(y, "toarray"):
        y, y_test = y.toarray(), y_test.toarray()
        y_test = np.pad(y_test, ((0, 0), (0, max(0, y.shape[1] - y_test.shape[1]))))
    splits = [halves(len(X), seed) for seed in SEEDS]
    train, test = (np.array(X, object), y), (np.array(X_test, object), y_test)
    yield from measured(name, train, test, splits, 1 + (name in PAIRS))


def halves(n, seed):
    """Four fifths of n rows and the others."""
    order = np.random.default_rng(seed).permutation(n)
    return order[n // 5 :], order[: n // 5]


def novels_table(data):
    X, y, number = novels(data / "text-english-novels")
    train, of_train = number < 2, number[number < 2]
    splits = []
    for seed in SEEDS:
        held = dict(zip(np.unique(y), np.random.default_rng(seed).integers(0, 2, 99), strict=False))
        is_held = of_train == np.array([held[author] for author in y[train]])
        splits.append((np.flatnonzero(~is_held), np.flatnonzero(is_held)))
    test = X[~train], y[~train]
    yield from measured("novels", (X[train], y[train]), test, splits, 2)


def length_table(data):
    """What idf gains in texts of so many words, on held-out rows."""
    sets = {name: stored(data / name, name in PAIRS)[:2] for name in ("banking77", "news20-bydate")}
    X, y, number = novels(data / "text-english-novels")
    sets["novels"] = X[number < 2], y[number < 2]
    for name, lengths in (("banking77", (99,)), ("news20-bydate", CUTS), ("novels", (10, 25, 100))):
        texts, labels = sets[name]
        random = np.random.default_rng(0)
        for n_words in lengths:
            cut = [
                " ".join(random.permutation(words)[:n_words] if name in WORDS else words[:n_words])
                for words in map(str.split, texts)
            ]
            found = {False: [], True: []}
            for idf in found:
                for seed in SEEDS:
                    learned, held_out = halves(len(cut), seed)
                    model = TextClassifier(
                        OAAClassifier(prune=0.03), word_ngrams=2 - (name in WORDS), idf=idf
                    ).set_params(random_state=seed)
                    model.fit([cut[at] for at in learned], labels[learned])
                    found[idf].append(
                        precision(model, [cut[at] for at in held_out], labels[held_out])
                    )
            mean = np.mean([len(text.split()) for text in cut])
            without, with_idf = (np.mean(found[idf]) for idf in found)
            yield (
                f"| length: {name} | {mean:.0f} words: idf=False, idf=True "
                f"| {without:.1f}, {with_idf:.1f} | |"
            )


def main():
    # LdSM notes trees that small data has collapsed.
    warnings.simplefilter("ignore")
    data, wanted = Path(sys.argv[1]), sys.argv[2:]
    makers = {name: partial(stored_table, data, name) for name in (*PAIRS, *WORDS)}
    makers |= {"novels": partial(novels_table, data), "length": partial(length_table, data)}
    print("| data set | features and learner | held out | test |", "|---|---|---|---|", sep="\n")
    for name, maker in makers.items():
        if not wanted or name in wanted:
            print(*maker(), sep="\n")


if __name__ == "__main__":
    main()
