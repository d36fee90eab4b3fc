#!/usr/bin/env python3
"""Checks the files of a run folder from outside: schema of report.json, JUnit, and the HTML.

usage: check_report.py SCHEMA FOLDER [FOLDER ...]
Exit code 77 (skipped, for CTest) with a reason when jsonschema is not installed.
"""
import html.parser
import json
import os
import re
import sys
import xml.etree.ElementTree

VOID = {"meta", "br", "img", "link", "hr", "input"}


class Balanced(html.parser.HTMLParser):
    """Collects tags that are not closed in order, links, ids, duplicated ids and scripts."""

    def __init__(self):
        super().__init__()
        self.open, self.faults, self.ids, self.targets, self.tags = [], [], set(), set(), set()

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        for name, value in attributes:
            if name == "id":
                if value in self.ids:
                    self.faults.append(f"id {value} twice")
                self.ids.add(value)
            if name == "href" and value.startswith("#"):
                self.targets.add(value[1:])
        if tag not in VOID:
            self.open.append((tag, self.getpos()))

    def handle_startendtag(self, tag, attributes):
        self.tags.add(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open[-1][0] != tag:
            self.faults.append(f"</{tag}> at {self.getpos()} closes {self.open[-1:]}")
        elif self.open:
            self.open.pop()


def check_html(path, faults):
    text = open(path, encoding="utf-8").read()
    parser = Balanced()
    parser.feed(text)
    parser.close()
    faults += [f"{path}: {fault}" for fault in parser.faults]
    faults += [f"{path}: <{tag}> opened at {at} is never closed" for tag, at in parser.open]
    faults += [f"{path}: link to missing #{target}" for target in parser.targets - parser.ids]
    if re.search(r"https?://", text):
        faults.append(f"{path}: refers to the network")
    if "script" in parser.tags:
        faults.append(f"{path}: needs a script")
    if os.path.getsize(path) >= 3_000_000:
        faults.append(f"{path}: {os.path.getsize(path)} bytes, allowed are 3 MB")
    for name in ("verdict", "chains", "gantt", "budgets", "jobs", "memory", "pictures", "plans", "glossary"):
        if name not in parser.ids:
            faults.append(f"{path}: section {name} is missing")


def check_junit(path, report, faults):
    suite = xml.etree.ElementTree.parse(path).getroot().find("testsuite")
    cases = suite.findall("testcase")
    requirements = report["verdict"]["requirements"]
    failed = sum(r["outcome"] == "FAIL" for r in requirements)
    skipped = sum(r["outcome"] == "NOT JUDGED" for r in requirements)
    if len(cases) != len(requirements) or int(suite.get("tests")) != len(cases):
        faults.append(f"{path}: not one test case per requirement")
    if int(suite.get("failures")) != failed or len(suite.findall("testcase/failure")) != failed:
        faults.append(f"{path}: failures differ from report.json")
    if int(suite.get("skipped")) != skipped or len(suite.findall("testcase/skipped")) != skipped:
        faults.append(f"{path}: skipped differ from report.json")


def main():
    try:
        import jsonschema
    except ImportError:
        print("skipped: python3-jsonschema is not installed")
        return 77
    schema = json.load(open(sys.argv[1], encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    faults = []
    for folder in sys.argv[2:]:
        report = json.load(open(f"{folder}/report.json", encoding="utf-8"))
        for error in validator.iter_errors(report):
            faults.append(f"{folder}/report.json: /{'/'.join(map(str, error.absolute_path))}: {error.message[:200]}")
        check_junit(f"{folder}/junit.xml", report, faults)
        check_html(f"{folder}/report.html", faults)
    for fault in faults:
        print(fault)
    print(f"{len(sys.argv) - 2} folders checked, {len(faults)} faults")
    return 1 if faults or len(sys.argv) < 3 else 0


if __name__ == "__main__":
    sys.exit(main())
