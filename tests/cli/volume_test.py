#!/usr/bin/env python3
"""Directories and files of this machine that the program is shown: -v/--volume."""

import json
import os
import unittest
from pathlib import Path

from program import ProgramTest, read_until, sandbox_in, validator


class Volume(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.mounts = None

    def setUp(self):
        super().setUp()
        cls = type(self)
        if cls.mounts is None:
            controls = json.loads(self.palmshed("doctor", "--format", "json").stdout)["controls"]
            cls.mounts = next((one for one in controls if one["name"] == "mounts"), None)
        if cls.mounts is None or not cls.mounts["works"]:
            self.skipTest(f"mounts: {cls.mounts}")
        self.here = self.directory.resolve()  # Without links.
        self.data = self.here / "data"
        self.data.mkdir()
        self.file = self.data / "file"
        self.file.write_text("from the host\n")
        # Modes that would let anybody write: what keeps the program from it is the mount.
        self.data.chmod(0o777)
        self.file.chmod(0o666)

    def refused(self, volume, *words, **options):
        """It says why on one line, with code and field in the document, and runs nothing."""
        document = self.directory / "result.json"
        answer = self.shell("echo ran", "-v", volume, "--json", str(document), **options)
        self.assert_result(answer, 125, b"")
        self.assert_says(answer, "--volume", *words)
        error = json.loads(document.read_text())
        validator("error").validate(error)
        self.assertEqual((error["code"], error["field"]), ("INVALID_OPTIONS", "mounts[0].source"))


class Shown(Volume):
    def test_read_only_unless_asked_otherwise(self):
        for suffix in ("", ":ro"):
            with self.subTest(suffix):
                answer = self.shell(
                    "cat /data/file; echo x >/data/new || echo x >>/data/file || rm /data/file"
                    " || chmod 600 /data/file || echo refused",
                    "-v", f"{self.data}:/data{suffix}",
                )
                self.assert_result(answer, 0, b"from the host\nrefused\n")
        self.assertEqual(os.listdir(self.data), ["file"])
        self.assertEqual(self.file.read_text(), "from the host\n")

    def test_what_is_written_arrives_where_it_is_allowed(self):
        answer = self.shell(
            "echo more >>/data/file && echo new >/data/new", "-v", f"{self.data}:/data:rw"
        )
        self.assert_result(answer, 0, b"", b"")
        self.assertEqual(self.file.read_text(), "from the host\nmore\n")
        self.assertEqual((self.data / "new").read_text(), "new\n")

    def test_one_file(self):
        answer = self.shell(
            "cat /opt/one; echo x >>/opt/one || echo refused", "-v", f"{self.file}:/opt/one"
        )
        self.assert_result(answer, 0, b"from the host\nrefused\n")

    def test_relative_to_the_current_directory(self):
        answer = self.run_program("-v", "data:/data", "--", "cat", "/data/file", cwd=self.here)
        self.assert_result(answer, 0, b"from the host\n", b"")

    def test_several_and_the_result_lists_them(self):
        document = self.directory / "result.json"
        answer = self.shell(
            "cat /a/file /b", "-v", f"{self.data}:/a:rw", "-v", f"{self.file}:/b",
            "--json", str(document),
        )
        self.assert_result(answer, 0, b"from the host\nfrom the host\n", b"")
        self.assertEqual(
            json.loads(document.read_text())["mounts"],
            [{"source": str(self.data), "target": "/a", "readOnly": False},
             {"source": str(self.file), "target": "/b", "readOnly": True}],
        )


class Refused(Volume):
    def test_links(self):
        (self.here / "link").symlink_to("data")
        (self.data / "file-link").symlink_to("file")
        for source in ("link", "link/file", "data/file-link"):
            with self.subTest(source):
                self.refused(f"{self.here / source}:/data", "symbolic link", "realpath")

    def test_what_is_missing(self):
        self.refused(f"{self.here}/missing:/data", "No such file")

    def test_other_than_a_source_and_a_target(self):
        for volume in (str(self.data), f"{self.data}:", ":/data"):
            with self.subTest(volume):
                answer = self.shell("echo ran", "-v", volume)
                self.assert_result(answer, 125, b"")
                self.assert_says(answer, "--volume", "SRC:DST[:ro|:rw]")

    def test_the_engines_state(self):
        # A user's, by way of a link; root's is in a place of its own.
        (self.here / "home").symlink_to(self.state)
        environment = dict(self.environment, XDG_STATE_HOME=f"{self.here}/home//.")
        state = Path("/var/lib" if os.geteuid() == 0 else self.state.resolve())
        process = self.started("echo ready; sleep 60", env=environment | {"SANDBOX_LOG": "debug"})
        own = state / "palmshed"
        sandbox = own / sandbox_in(read_until(process.stderr, b"exec.start"))
        for source in (state, own, sandbox, sandbox / "workspace"):
            for suffix in ("", ":rw"):
                with self.subTest(source=source, suffix=suffix):
                    self.refused(
                        f"{source}:/data{suffix}", "state of the engine", env=environment
                    )
        process.terminate()
        process.wait()
        answer = self.shell("cat /data/file", "-v", f"{self.data}:/data", env=environment)
        self.assert_result(answer, 0, b"from the host\n", b"")


if __name__ == "__main__":
    unittest.main()
