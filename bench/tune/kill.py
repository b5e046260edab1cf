"""kill -9 at random moments while `qdc tune` runs: the study always opens, no finished trial is lost or doubled.

  python kill.py QDC DATASET [--kills 50] [--processes 1] [--data-dir DIR] [--study FILE.db]
"""
import argparse
import os
import random
import sqlite3
import subprocess
import tempfile
import time

parser = argparse.ArgumentParser()
parser.add_argument("qdc")
parser.add_argument("dataset")
parser.add_argument("--kills", type=int, default=50)
parser.add_argument("--processes", type=int, default=1)
parser.add_argument("--longest", type=float, default=2.5)
parser.add_argument("--data-dir")
parser.add_argument("--study")
options = parser.parse_args()
study = options.study or os.path.join(tempfile.mkdtemp(), "killed.db")
command = [options.qdc, "tune", options.dataset, "--model", "gcn+qdc", "--trials", "100000", "--jobs", "2",
           "--study", study, "--quiet"] + (["--data-dir", options.data_dir] if options.data_dir else [])
random.seed(7)


def finished():
    if not os.path.exists(study):
        return {}
    connection = sqlite3.connect(study, timeout=30)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        numbers = connection.execute("SELECT number FROM trials").fetchall()
        assert sorted(n for (n,) in numbers) == list(range(len(numbers))), "numbers are not 0, 1, 2, ..."
        rows = connection.execute(
            "SELECT t.number, t.state, v.value, (SELECT group_concat(param_name || param_value) FROM trial_params p "
            "WHERE p.trial_id = t.trial_id), (SELECT count(*) FROM trial_user_attributes a WHERE a.trial_id = t.trial_id) "
            "FROM trials t LEFT JOIN trial_values v ON v.trial_id = t.trial_id WHERE t.state = 'COMPLETE'").fetchall()
    except sqlite3.OperationalError as error:
        if "no such table" in str(error):
            return {}
        raise
    assert all(row[2] is not None and row[4] == 8 for row in rows), "a finished trial without its value or attributes"
    assert len({row[0] for row in rows}) == len(rows), "doubled"
    return {row[0]: row for row in rows}


before = {}
for kill in range(options.kills):
    workers = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
               for _ in range(options.processes)]
    time.sleep(random.uniform(0.05, options.longest))
    for worker in workers:
        worker.kill()
    for worker in workers:
        worker.wait()
    after = finished()
    lost = [number for number, row in before.items() if after.get(number) != row]
    assert not lost, f"lost or changed after kill {kill}: {lost}"
    before = after
unfinished = sqlite3.connect(study).execute("SELECT count(*) FROM trials WHERE state <> 'COMPLETE'").fetchone()[0]
print(f"{options.kills} kills, {options.processes} process(es): {len(before)} finished trials, none lost, none doubled; "
      f"{unfinished} to be retried")
