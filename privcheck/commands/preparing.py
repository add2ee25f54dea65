"""`prepare`: from a raw table to trajectories."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from privcheck.commands.kinds import Count, Place
from privcheck.commands.options import ProgressBars, finish, json_option, seed_option

_CONFIRM = (
    'confirm that each label is public knowledge, add those that the data lack, set "inferred" to false, and give it '
    "to --codebook"
)


@click.command()
@click.argument("raw", type=Place())
@click.option("--out", type=Place(), help="The trajectories: a .parquet or .csv file.")
@click.option(
    "--column", "columns", multiple=True, metavar="OURS=THEIRS",
    help="What the file calls a column; may be repeated. Ours: "
    "episode, step, state, action, reward, next_state, user."
)  # fmt: skip
@click.option("--codebook", type=Place(), help="The public labels of states and actions, JSON.")
@click.option("--draft-codebook", type=Place(), help="Only write the labels that occur, for you to confirm.")
@click.option("--states", type=Count(), help="S, of files that hold codes; ended episodes get code S.")
@click.option("--reward-range", nargs=2, type=float, metavar="LOW HIGH", help="Public bounds, mapped to [0, 1].")
@click.option("--clip-rewards", is_flag=True, help="Clip rewards to their bounds.")
@click.option("--horizon", type=Count(), metavar="H", help="Steps per episode; longer episodes are cut.")
@click.option(
    "--missing", default="refuse", show_default=True, help="What to do with episodes that lack a value: refuse or drop."
)
@click.option(
    "--short", default="refuse", show_default=True, help="What to do with episodes shorter than H: refuse, pad or drop."
)
@click.option("--pad-reward", type=float, help="The reward of padded steps, in the file's unit; 0, or the least.")
@click.option("--who", metavar="NOUN", help="What one user is called, such as patient; by default from the column.")
@click.option(
    "--max-trajectories", type=Count(), metavar="M", help="At most how many episodes a user has; by default 1."
)
@click.option(
    "--keep",
    default="refuse",
    show_default=True,
    help="Which M episodes to keep of a user who has more: first or random; refuse refuses the table.",
)
@click.option(
    "--one-episode-is-one-user",
    is_flag=True,
    help="State that each episode is another user's, of a table without users.",
)
@click.option("--sort", is_flag=True, help="Sort the rows by episode and step first; holds the file in memory.")
@seed_option
@json_option
def prepare(
    raw: Path, *, out: Path | None, columns: tuple[str, ...], codebook: Path | None, draft_codebook: Path | None,
    who: str | None, max_trajectories: int | None, one_episode_is_one_user: bool, as_json: bool, **choices: Any,
) -> None:  # fmt: skip
    """Make trajectories of the RAW table: codes, rewards in [0, 1], episodes of one length, one row per step.

    \b
    Examples:
      privcheck prepare stays.csv --draft-codebook codes.json --column episode=stay
      privcheck prepare stays.csv --out trips.parquet --codebook codes.json --reward-range -15 15 \
        --column episode=stay --column user=patient_id --max-trajectories 8 --keep first
    """
    from privcheck.commands.kept import telling_what_is_kept
    from privcheck.commands.printing import describe_prepared
    from privcheck.commands.setting import parse_pairs
    from privcheck.preparing import PreparationPlan, read_codebook
    from privcheck.preparing import draft_codebook as draft
    from privcheck.preparing import prepare as make
    from privcheck.preparing.stream import find_labels
    from privcheck.reading import Users

    if (out is None) == (draft_codebook is None):
        raise click.UsageError("give --out FILE for the trajectories, or --draft-codebook FILE")
    named = parse_pairs(columns, option="--column")
    if draft_codebook is not None:
        drafted = draft(*find_labels(raw, named))
        drafted.save(draft_codebook)
        finish(drafted, lambda _: f"{draft_codebook}: {_CONFIRM}", as_json=as_json)
        return
    book = None if codebook is None else read_codebook(codebook)
    users = Users(who=who, max_trajectories=max_trajectories, one_episode_is_one_user=one_episode_is_one_user)
    plan = PreparationPlan(columns=named, codebook=book, users=users, **choices)
    assert out is not None
    with ProgressBars() as bars, telling_what_is_kept(None, resumes=False):
        done = make(raw, out, plan, progress=bars("rows"))
    finish(done, describe_prepared, as_json=as_json)
