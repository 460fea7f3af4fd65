"""The parts of the worker that need no server."""

from __future__ import annotations

import threading
import unittest
from pathlib import Path
from unittest.mock import Mock

import helpers  # noqa: F401
from berth_worker.channel.connection import LineReader
from berth_worker.channel.delivery import ChannelDelivery
from berth_worker.channel.outbox import Outbox
from berth_worker.channel.upgrade import Terms
from berth_worker.environment import Environment
from berth_worker.one_shot_event import OneShotEvent
from berth_worker.json_text import UnsendableOutput, json_bytes, output_bytes
from berth_worker.timings import Backoff, Timings
from berth_worker.public.urls import Urls
from berth_worker.result import ResultFormat
from berth_worker.take_ahead import MOST_AHEAD, TakeAhead
from berth_worker.timers import Timers


REPOSITORY = Path(__file__).resolve().parents[3]


class SourceFiles(unittest.TestCase):
    def test_lines_have_at_most_110_columns(self) -> None:
        folders = ("packages/worker-python", "tests/python", "bench")
        files = [file for folder in folders for file in (REPOSITORY / folder).rglob("*.py")]
        self.assertGreater(len(files), 70)
        for file in files:
            for number, line in enumerate(file.read_text().splitlines(), 1):
                self.assertLessEqual(len(line), 110, f"{file}:{number}")


class Lines(unittest.TestCase):
    def test_pieces_may_end_anywhere(self) -> None:
        text = 'A ü 1\nK x 2\n\nJ 3 {"a":"é"}\n'.encode()
        for size in range(1, len(text) + 1):
            reader = LineReader()
            lines = [line for at in range(0, len(text), size) for line in reader.push(text[at : at + size])]
            self.assertEqual(lines, text.split(b"\n")[:-1], size)


class TakingAhead(unittest.TestCase):
    def test_only_short_jobs(self) -> None:
        ahead = TakeAhead()
        self.assertEqual(ahead.jobs(1), 0)
        for _ in range(32):
            ahead.ended(0.001)
        self.assertEqual(ahead.jobs(1), 20)
        self.assertEqual(ahead.jobs(100), MOST_AHEAD)
        ahead.ended(1.0)
        self.assertEqual(ahead.jobs(1), 0)

    def test_forgets(self) -> None:
        ahead = TakeAhead()
        for _ in range(32):
            ahead.ended(0.0)
        self.assertEqual(ahead.jobs(1), MOST_AHEAD)
        ahead.forget()
        self.assertEqual(ahead.jobs(1), 0)


class Lists(unittest.TestCase):
    def test_a_job_with_a_result_is_held_until_it_is_acknowledged_and_a_returned_one_is_not(self) -> None:
        lock = threading.RLock()
        outbox = Outbox(lock=lock, elsewhere=Mock(), on_stays=Mock(), on_settled=Mock())
        outbox.connect(Mock(ending=False, congested=False), Terms(takes_back=True))
        returned, ended = (ChannelDelivery({"id": name}, b"lease", outbox) for name in ("returned", "ended"))
        for delivery in (returned, ended):
            self.assertTrue(outbox.expect(delivery))
        self.assertTrue(returned.return_job())
        ended.finish(b"{}", False)
        self.assertEqual(outbox.unacknowledged(), ["ended"])
        self.assertFalse(outbox.settled)
        for name in (returned.name, ended.name):
            outbox.acknowledged(name)
        self.assertTrue(outbox.settled)


class Json(unittest.TestCase):
    def test_text(self) -> None:
        self.assertEqual(json_bytes({"a": "é", "b": 1.0}), '{"a":"é","b":1.0}'.encode())
        self.assertEqual(json_bytes("\ud800"), b'"\\ud800"')

    def test_what_has_no_form(self) -> None:
        circle: list[object] = []
        circle.append(circle)
        for value in (b"x", {1, 2}, circle, {(1, 2): 3}):
            with self.assertRaisesRegex(UnsendableOutput, "the output cannot be sent as JSON"):
                output_bytes("the output", value)


class Results(unittest.TestCase):
    def test_bodies(self) -> None:
        form = ResultFormat()
        cases: list[tuple[object, bytes]] = [
            (None, b'{"output":null}'),
            ([1], b'{"output":[1]}'),
            ({}, b"{}"),
            ({"a": 1}, b'{"output":{"a":1}}'),
            ({"error": "e"}, b'{"error":"e"}'),
            ({"error": "", "a": 1}, b'{"output":{"a":1}}'),
            ({"error": {"c": 1}, "a": 1}, b'{"output":{"a":1},"error":{"c":1}}'),
            ({"refresh_worker": True, "a": 1}, b'{"output":{"a":1},"stopPod":true}'),
        ]
        for value, body in cases:
            self.assertEqual(form.returned(value).body, body)
        self.assertEqual(
            ResultFormat(refresh_worker=True).streamed([b"1", b"2"]).body, b'{"output":[1,2],"stopPod":true}'
        )

    def test_the_value_of_the_handler_stays_as_it_is(self) -> None:
        value = {"error": "e", "a": 1}
        ResultFormat().returned(value)
        self.assertEqual(value, {"error": "e", "a": 1})

    def test_errors_that_cannot_be_read(self) -> None:
        class Mute(Exception):
            def __str__(self) -> str:
                raise RuntimeError("no")

        self.assertIn(b"cannot be read", ResultFormat().raised(Mute()).body)


class Environments(unittest.TestCase):
    VARIABLES = {
        "RUNPOD_POD_ID": "w1",
        "RUNPOD_WEBHOOK_GET_JOB": "http://h/v2/e/job-take/$ID?gpu=x",
        "RUNPOD_WEBHOOK_POST_OUTPUT": "http://h/v2/e/job-done/$RUNPOD_POD_ID/$ID?gpu=x",
    }

    def test_urls(self) -> None:
        urls = Environment(self.VARIABLES).urls
        self.assertEqual(urls.take(1, False), "http://h/v2/e/job-take/w1?gpu=x&job_in_progress=0")
        self.assertEqual(
            urls.take(3, True), "http://h/v2/e/job-take-batch/w1?gpu=x&batch_size=3&job_in_progress=1"
        )
        self.assertEqual(urls.channel, "http://h/v2/e/job-channel/w1?gpu=x")
        self.assertEqual(urls.done("a/b", True), "http://h/v2/e/job-done/w1/a%2Fb?gpu=x&isStream=true")
        self.assertIsNone(urls.ping([]))

    def test_a_list_that_is_cut_says_so(self) -> None:
        urls = Urls(take="http://h/", done="http://h/", stream=None, ping="http://h/p", worker_id="w")
        self.assertIn("job_id=a%2Cb&berth_version", urls.ping(["a", "b"]) or "")
        self.assertIn("job_id=a&job_ids=partial&", urls.ping(["a", "b"], most=1) or "")

    def test_bad_values_are_named(self) -> None:
        for name, value in (("RUNPOD_WEBHOOK_GET_JOB", "ftp://h"), ("RUNPOD_AI_API_KEY", "key\n")):
            with self.assertRaisesRegex(ValueError, name):
                Environment({**self.VARIABLES, name: value})
        for interval, seconds in (("4000", 4.0), ("x", 10.0), ("0", 10.0), ("1", 0.1), ("nan", 10.0)):
            self.assertEqual(
                Environment({**self.VARIABLES, "RUNPOD_PING_INTERVAL": interval}).ping_seconds, seconds
            )


class Waiting(unittest.TestCase):
    def test_one_shot_events(self) -> None:
        event = OneShotEvent()
        self.assertFalse(event.wait(0.01))
        called: list[int] = []
        event.on_set(lambda: called.append(1))
        event.set()
        event.set()
        event.on_set(lambda: called.append(2))
        self.assertTrue(event.wait())
        self.assertEqual(called, [1, 2])

    def test_timers(self) -> None:
        done = threading.Event()
        order: list[str] = []
        timers = Timers(lambda error: order.append(str(error)))
        timers.call_later(0.06, done.set)
        timers.call_later(0.02, lambda: order.append("second"))
        timers.call_later(0.0, lambda: order.append("first"))
        timers.call_later(0.03, lambda: 1 / 0)
        timers.call_later(0.01, lambda: order.append("never")).cancel()
        self.assertTrue(done.wait(5))
        self.assertEqual(order, ["first", "second", "division by zero"])

    def test_backoff(self) -> None:
        backoff = Backoff(Timings(first_retry=1.0, longest_retry=4.0))
        for whole in (1, 2, 4, 4):
            self.assertTrue(whole / 2 <= backoff.next() <= whole)
        backoff.reset()
        self.assertLessEqual(backoff.next(), 1)


if __name__ == "__main__":
    unittest.main()
