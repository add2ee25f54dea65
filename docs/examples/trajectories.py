"""Read a table of episodes.

A table has one row a step, and a column of users, because somebody has to say who is
protected. The sizes are given, since those of the data are private, and everything that
is wrong with the rows is reported at once.
"""

from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory

from privcheck import Users, read_trajectories
from privcheck.errors import TrajectoryError

TABLE = """patient,episode,step,state,action,reward,next_state
Ada,1,0,0,1,0.0,2
Ada,1,1,2,0,1.0,2
Emmy,2,0,1,1,0.5,0
Emmy,2,1,0,0,0.0,1
"""
patients = Users(column="patient", max_trajectories=1)
sizes = {"num_states": 3, "num_actions": 2}
with TemporaryDirectory() as folder, chdir(folder):
    file = Path("stays.csv")
    for text in (TABLE, TABLE.replace("0.5,0", "5,1").replace("2,0,1.0", "3,0,1.0")):
        file.write_text(text, encoding="utf-8")
        try:
            read = read_trajectories(file, users=patients, **sizes).trajectories
            print(f"{read.users} users, {read.horizon} steps, {read.unit.words}")
        except TrajectoryError as error:
            print(error)
