"""Texts in figures, and where they are drawn."""

from unittest import mock

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text


def texts(figure):
    """Return all texts that are drawn, with their boxes in pixels."""
    canvas, found, draw = FigureCanvasAgg(figure), {}, Text.draw

    def noted(text, renderer):
        if text.get_visible() and text.get_text():
            found[text] = None
        draw(text, renderer)

    with mock.patch.object(Text, "draw", noted):
        canvas.draw()
    # The boxes of annotations exclude their arrows.
    boxes = [(text, Text.get_window_extent(text, canvas.get_renderer())) for text in found]
    return [(text.get_text(), box) for text, box in boxes]


def overlapping(figure):
    """Return pairs of texts that overlap by more than a pixel."""
    boxes = [(text, box.padded(-0.5)) for text, box in texts(figure)]
    return [
        (one, other)
        for at, (one, box) in enumerate(boxes)
        for other, second in boxes[:at]
        if box.overlaps(second)
    ]


def cut_off(figure):
    """Return texts that are partly outside the figure."""
    frame = figure.bbox.padded(1)
    return [
        text
        for text, box in texts(figure)
        if not (frame.contains(box.x0, box.y0) and frame.contains(box.x1, box.y1))
    ]
