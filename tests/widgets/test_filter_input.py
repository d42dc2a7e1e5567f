"""The line that is typed in: what becomes of a hostile text, and of the line itself when it is gone."""

import gc
import weakref

from jobtui.widgets.filter_bar import FilterBar
from jobtui.widgets.filter_input import FilterInput
from tests.waiting import wait_until
from tests.widgets.widget_app import WidgetApp

OPENED = 4


async def test_it_is_forgotten_when_it_is_closed() -> None:
    app = WidgetApp()
    made: list[weakref.ref[FilterInput]] = []
    async with app.run_test() as pilot:
        for _ in range(OPENED):
            bar = FilterBar("x")
            await app.screen.mount(bar)
            await wait_until(lambda: isinstance(app.focused, FilterInput), pilot)
            assert isinstance(app.focused, FilterInput)  # a query would keep it in its cache
            made.append(weakref.ref(app.focused))
            await bar.remove()
            await wait_until(lambda: app.focused is None, pilot)
        del bar
        # The one that was there last may still be in a cache of the framework
        await wait_until(lambda: (gc.collect(), sum(ref() is not None for ref in made) <= 1)[1], pilot)
