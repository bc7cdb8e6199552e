"""Base of the tests that start their own `Fleet`s."""
import unittest

import api
from cluster import wait_until
from fleet import Fleet


class FleetCase(unittest.TestCase):
    """What a test starts ends with it."""

    OPTIONS = []  # of each coordinator

    def fleet(self, *options, **keywords):
        fleet = Fleet(*self.OPTIONS, *options, **keywords)
        self.addCleanup(fleet.close)
        return fleet.start()

    def session(self, fleet, name="test"):
        session = fleet.session(name)
        self.addCleanup(session.abandon)
        return session

    def owner(self, fleet, name):
        owner = fleet.owner(name)
        self.addCleanup(owner.close)
        return owner

    def assert_fails(self, reason, function, *arguments, **keywords):
        with self.assertRaises(api.StatementFailed) as caught:
            function(*arguments, **keywords)
        self.assertEqual(caught.exception.reason, reason)
        return caught.exception.error

    def assert_ok(self, script):
        self.assertEqual(script.code, 0, script.outcomes())
        return script

    def assert_aborts(self, script, line, reason, outcome="failed"):
        """The script ended at that line, and all before it succeeded."""
        self.assertEqual(script.code, 1, script.outcomes())
        self.assertEqual(script.outcomes()[-1], (line, outcome, reason))
        self.assertTrue(all(r["outcome"] in ("ok", "waiting") for r in script.results[:-1]))
        return script.results[-1]

    def assert_free(self, fleet, *keys):
        """At once, which is after the release at the owner and not after a lease."""
        for key in keys:
            wait_until(lambda k=key: fleet.status(k).holder == "", f"{key} is free", deadline_s=5)



def place(session, keys, owners="abc"):
    """GET, SET and STORE of each key; Equitable Load puts them on the instances in turn."""
    for i, key in enumerate(keys):
        token = session.get(key).lock_token
        put = session.set(key, b"first " + key, token)
        assert put.instance == owners[i % len(owners)], put.instance
        session.store(key, token, put.key.version)


def puts(keys):
    """GET, SET and STORE of each key."""
    return "".join(f"GET {key}\nSET {key} of {key}\nSTORE {key}\n" for key in keys)


def places(script):
    """Where each SET went, in order."""
    return "".join(r["instance"] for r in script.results if r["statement"] == "SET")
