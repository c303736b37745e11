"""The model card as a page, and the description in OpenAPI."""

from html import escape
from typing import Any

_HEAD = """<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<style>body {font: 1rem/1.5 sans-serif; margin: 2rem} td {padding-right: 2rem}</style>
"""
_REFUSALS = {
    "400": "Invalid rows or values",
    "408": "The body arrived too slowly",
    "413": "The body is too large",
    "503": "The prediction took too long",
}


def card_page(card: dict[str, Any]) -> str:
    """Return the model card as HTML."""
    rows = ""
    for name, value in card.items():
        shown = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        rows += f"<tr><td>{escape(name.replace('_', ' '))}<td>{escape(shown)}"
    title = escape(card["model"])
    return (
        f"{_HEAD}<title>{title}</title><h1>{title}</h1><table>{rows}</table>"
        '<p><a href="openapi.json">OpenAPI</a></html>'
    )


def openapi(card: dict[str, Any]) -> dict[str, Any]:
    """Return the description of the routes in OpenAPI 3.1."""
    row: dict[str, Any] = {"type": "string"}
    if card["takes"] == "rows":
        names = ["string", "null"] if card["categories"] else []
        objects = {"type": "object", "additionalProperties": {"type": ["number", *names]}}
        row = {"oneOf": [_list({"type": ["number", *(names or ["null"])]}), objects]}
    rows = {card["takes"]: _list(row) | {"minItems": 1, "maxItems": card["most_rows"]}}
    more = {
        "k": {"type": "integer", "minimum": 1, "default": 5},
        "scores": {"enum": ["raw", "probability"], "default": "raw"},
    }
    label = {"type": ["string", "number", "boolean"]}
    best = _list(label if card["predicts"] == "one label" else _list(label))
    ranked = {"labels": _list(_list(label)), "scores": _list(_list({"type": "number"}))}
    return {
        "openapi": "3.1.0",
        "info": {"title": card["model"], "version": card["xmtree"]},
        "paths": {
            "/": {"get": _route("The model card, as HTML if the client accepts it")},
            "/health": {"get": _route("Answers while the server is ready")},
            "/predict": {
                "post": _route("The best label of each row, or its set", rows, {"labels": best})
            },
            "/predict_topk": {
                "post": _route("The k best labels of each row, best first", rows | more, ranked)
            },
        },
    }


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _content(properties: dict[str, Any] | None) -> dict[str, Any]:
    """Return the schema of an object, whose first property is required."""
    schema: dict[str, Any] = {"type": "object"}
    if properties:
        schema |= {"properties": properties, "required": list(properties)[:1]}
    return {"application/json": {"schema": schema}}


def _route(
    summary: str, given: dict[str, Any] | None = None, found: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return the description of a route that takes and returns these properties."""
    route: dict[str, Any] = {
        "summary": summary,
        "responses": {"200": {"description": "OK", "content": _content(found)}},
    }
    if given:
        route["requestBody"] = {"required": True, "content": _content(given)}
        content = _content({"error": {"type": "string"}})
        for code, what in _REFUSALS.items():
            route["responses"][code] = {"description": what, "content": content}
    return route
