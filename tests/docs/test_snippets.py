"""Every Python block of the README and the docs runs as it stands, one page in one program."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import snippets

MARKS = {"", "skip", "launch", "run"}


def page_name(page: Path) -> str:
    return page.relative_to(snippets.ROOT).as_posix()


def snippets_of(page: Path) -> list[snippets.Snippet]:
    return snippets.find_snippets(page.read_text(encoding="utf-8"))


def has_code(page: Path) -> bool:
    """Tell whether anything of a page is to be run."""
    found = snippets_of(page)
    return bool(snippets.python_of(found) or snippets.commands_of(found))


PAGES_WITH_CODE = [page for page in snippets.documents() if has_code(page)]
PAGES_WITH_BLOCKS = [page for page in snippets.documents() if snippets_of(page)]


@pytest.mark.parametrize("page", PAGES_WITH_CODE, ids=page_name)
def test_the_code_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    found = snippets_of(page)
    for snippet in found:
        if snippet.mark == "skip":
            print(f"{page_name(page)}:{snippet.line} not run: {snippet.reason}")
    variables = snippets.environment(tmp_path)
    folder = tmp_path / "work"
    folder.mkdir()
    if python := snippets.python_of(found):
        program = folder / f"{page.stem.lower()}.py"
        program.write_text(snippets.as_program(python), encoding="utf-8")
        print(snippets.run(["python", program.name], folder, variables))
    for command in snippets.commands_of(found):
        print(snippets.run(["bash", "-euo", "pipefail", "-c", command], folder, variables))


@pytest.mark.parametrize("page", PAGES_WITH_BLOCKS, ids=page_name)
def test_the_marks_of_a_page_are_known_and_skips_have_a_reason(page: Path) -> None:
    for snippet in snippets_of(page):
        place = f"{page_name(page)}:{snippet.line}"
        assert snippet.mark in MARKS, place
        assert snippet.mark != "skip" or snippet.reason, f"{place} skips without a reason"


PAGE = """
# Title

```python
value = 1
```

<!-- snippet: skip needs a cluster -->
```python
raise SystemExit("never run")
```

- a list

  <!-- snippet: launch -->
  ```python
  if value == 1:
      raise ValueError("line 17")
  ```

<!-- snippet: run -->
```console
$ echo one
one
$ echo two
```
"""


def test_blocks_marks_and_line_numbers_are_read() -> None:
    found = snippets.find_snippets(PAGE)
    assert [(item.language, item.mark, item.line) for item in found] == [
        ("python", "", 5),
        ("python", "skip", 10),
        ("python", "launch", 17),
        ("console", "run", 23),
    ]
    assert found[1].reason == "needs a cluster"
    assert snippets.commands_of(found) == ["echo one", "echo two"]


def test_a_failing_block_is_reported_with_its_line_in_the_page(tmp_path: Path) -> None:
    python = snippets.python_of(snippets.find_snippets(PAGE))
    (tmp_path / "page.py").write_text(snippets.as_program(python))
    with pytest.raises(AssertionError, match=r'(?s)page\.py", line 18.*ValueError: line 17'):
        snippets.run(["python", "page.py"], tmp_path, snippets.environment(tmp_path))
