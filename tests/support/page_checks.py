"""What every page of the dashboard owes to those who read it: it fits the screen, and axe finds nothing."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect

VIEWS = ((1400, "light"), (390, "dark"), (390, "light"))


def check_pages(browser: Browser, address: str, paths: tuple[str, ...]) -> None:
    """Look at pages of a server on a desk and on a phone, light and dark."""
    found = {}
    for width, scheme in VIEWS:
        # Its script comes from a test library, not from the server, whose policy forbids such.
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            bypass_csp=True,
            color_scheme=scheme,  # type: ignore[arg-type]
        )
        page = context.new_page()
        for path in paths:
            page.goto(f"{address}/{path}")
            expect(page.get_by_role("heading", level=1)).to_be_visible()
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path
            violations = Axe().run(page).response["violations"]
            found[width, scheme, path] = [(one["id"], [node["html"] for node in one["nodes"]]) for one in violations]
        context.close()
    assert [each for each in found.items() if each[1]] == []
    assert len(found) == len(VIEWS) * len(paths)
