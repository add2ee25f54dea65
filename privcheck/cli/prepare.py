"""`prepare`: trajectories from a raw table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from privcheck.cli.options import Count, Place, finish, json_option, seed_option
from privcheck.cli.progress import ProgressBars
from privcheck.support.files import write_whole

if TYPE_CHECKING:
    from privcheck.data.reading import Users

_CONFIRM = (
    'confirm that each label is public, add labels missing from the data, set "inferred" to false, and give it '
    "to --codebook"
)


@click.command()
@click.argument("raw", type=Place())
@click.option("--out", type=Place(), help="The trajectories: a .parquet or .csv file.")
@click.option(
    "--column", "columns", multiple=True, metavar="OURS=THEIRS",
    help="The file's name of a column; may be repeated. Ours: "
    "episode, step, state, action, reward, next_state, user."
)  # fmt: skip
@click.option("--draft", type=Place(), help="Only write a recipe, TOML: a guess for every choice, for you to confirm.")
@click.option("--recipe", type=Place(), help="Prepare by a confirmed recipe, instead of all other choices.")
@click.option("--layout", help="With --draft: a known layout (mimic, omop, minari, d3rlpy); by default one that fits.")
@click.option("--codebook", type=Place(), help="The public labels of states and actions, JSON.")
@click.option("--draft-codebook", type=Place(), help="Only write the labels in the data, for you to confirm.")
@click.option("--states", type=Count(), help="S, for files with codes; ended episodes get code S.")
@click.option(
    "--reward-range", nargs=2, type=float, metavar="LOW HIGH", help="Public bounds of the reward, mapped to [0, 1]."
)
@click.option("--clip-rewards", is_flag=True, help="Clip rewards to their bounds.")
@click.option("--horizon", type=Count(), metavar="H", help="Steps per episode; longer episodes are cut.")
@click.option("--missing", default="refuse", show_default=True, help="Episodes with a missing value: refuse or drop.")
@click.option("--short", default="refuse", show_default=True, help="Episodes shorter than H: refuse, pad or drop.")
@click.option(
    "--pad-reward", type=float, help="The reward of padded steps, in the file's unit; by default 0, or the lower bound."
)
@click.option(
    "--observe", metavar="NAME:LOW:HIGH,…",
    help="Columns of numbers that make up an observation, with their public bounds: for agents that train a policy. "
    "With --horizon, the longest episode, --reward-range and a column terminated.",
)  # fmt: skip
@click.option("--who", metavar="NOUN", help="The noun for one user, such as patient; by default from the column.")
@click.option("--max-trajectories", type=Count(), metavar="M", help="The most episodes of a user; by default 1.")
@click.option(
    "--keep",
    default="refuse",
    show_default=True,
    help="The M episodes to keep of a user who has more: first or random; refuse refuses the table.",
)
@click.option(
    "--one-episode-is-one-user",
    is_flag=True,
    help="State that each episode belongs to a different user, for a table without users.",
)
@click.option("--sort", is_flag=True, help="Sort the rows by episode and step first; holds the file in memory.")
@click.option("--times", metavar="order|WIDTH", help="Steps are times: number rows by them, or bin them (4h).")
@click.option("--time-format", metavar="FORMAT", help="Format of times in text, such as %d.%m.%Y %H:%M; else ISO 8601.")
@click.option(
    "--several",
    default="refuse",
    show_default=True,
    help="The row to use if an episode has several at one step or time: first or last.",
)
@click.option(
    "--encoding", default="utf-8", show_default=True, help="Encoding of a text file, such as latin-1 or cp1252."
)
@click.option("--delimiter", help="Separator in a text file; by default a comma, in .tsv a tab.")
@click.option("--decimal", default=".", show_default=True, help="The decimal mark in a text file: . or ,")
@click.option(
    "--malformed",
    default="refuse",
    show_default=True,
    help="Rows of a text file with too few or too many values: refuse or drop.",
)
@click.option("--skip", type=Count(least=0), default=0, metavar="LINES", help="Lines of a text file above its header.")
@click.option("--empty", multiple=True, metavar="TEXT", help="A text that means a missing value; may be repeated.")
@click.option(
    "--spellings",
    default="refuse",
    show_default=True,
    help="Users whose names differ only in case, blanks or leading zeros: same (one person) or different.",
)
@click.option("--show-values", is_flag=True, help="Messages quote values of rows, which are private.")
@seed_option
@json_option
def prepare(
    raw: Path, *, out: Path | None, columns: tuple[str, ...], codebook: Path | None, draft_codebook: Path | None,
    draft: Path | None, recipe: Path | None, layout: str | None, who: str | None, max_trajectories: int | None,
    one_episode_is_one_user: bool, observe: str | None, **choices: Any,
) -> None:  # fmt: skip
    """Make trajectories of the RAW table.

    Codes, rewards in [0, 1], episodes of one length, one row per step.

    \b
    Examples:
      privcheck prepare stays.csv --draft recipe.toml
      privcheck prepare stays.csv --recipe recipe.toml --out trips.parquet
      privcheck prepare stays.csv --out trips.parquet --observe age:0:120,pulse:20:250 --horizon 20 \
        --reward-range -15 15 --column episode=stay --column user=patient_id
      privcheck prepare stays.csv --out trips.parquet --codebook codes.json --reward-range -15 15 \
        --column episode=stay --column user=patient_id --max-trajectories 8 --keep first
    """
    from privcheck.cli.printing import describe_draft, describe_prepared
    from privcheck.commands.partial_outputs import telling_what_is_kept
    from privcheck.commands.settings import parse_pairs
    from privcheck.data.preparing import PreparationPlan, read_codebook
    from privcheck.data.preparing import draft_codebook as codes
    from privcheck.data.preparing import prepare as make
    from privcheck.data.preparing.drafts import draft_recipe
    from privcheck.data.preparing.recipes import read_recipe
    from privcheck.data.preparing.stream import find_labels
    from privcheck.data.reading import Users

    if sum(file is not None for file in (out, draft, draft_codebook)) != 1:
        raise click.UsageError(
            "give --draft FILE for a recipe, or --out FILE for the trajectories, or --draft-codebook FILE"
        )
    if layout is not None and draft is None:
        raise click.UsageError("--layout goes with --draft")
    named = parse_pairs(columns, option="--column")
    if draft is not None:
        _refuse_beside("--draft", "columns", "layout")
        if draft.exists():
            raise click.UsageError(f"{draft} exists, and may have your edits: choose another name, or delete it")
        drafted = draft_recipe(raw, layout=layout, columns=named)
        draft.parent.mkdir(parents=True, exist_ok=True)
        write_whole(draft, drafted.recipe)
        finish(drafted, lambda one: describe_draft(one, raw, draft))
        return
    if observe is not None:
        users = Users(who=who, max_trajectories=max_trajectories, one_episode_is_one_user=one_episode_is_one_user)
        _prepare_observed(raw, out, observe=observe, columns=named, users=users, choices=choices)
        return
    if recipe is not None:
        _refuse_beside("--recipe", "recipe", "show_values")
        read = read_recipe(recipe, show_values=choices["show_values"])
        plan, digest = read.plan, read.digest
    else:
        book = None if codebook is None else read_codebook(codebook)
        users = Users(who=who, max_trajectories=max_trajectories, one_episode_is_one_user=one_episode_is_one_user)
        plan, digest = PreparationPlan(columns=named, codebook=book, users=users, **choices), ""
    if draft_codebook is not None:
        found = codes(*find_labels(raw, plan))
        found.save(draft_codebook)
        finish(found, lambda _: f"{draft_codebook}: {_CONFIRM}")
        return
    assert out is not None
    with ProgressBars() as bars, telling_what_is_kept(None, resumes=False):
        done = make(raw, out, plan, recipe=digest, progress=bars("rows"))
    finish(done, describe_prepared)


def _prepare_observed(
    raw: Path, out: Path | None, *, observe: str, columns: dict[str, str], users: Users, choices: dict[str, Any]
) -> None:
    """Prepare episodes with observations, and print the result."""
    from privcheck.cli.printing import describe_prepared
    from privcheck.data.preparing.observed import parse_observed, prepare_observations

    allowed = ("columns", "who", "max_trajectories", "one_episode_is_one_user", "horizon", "reward_range")
    _refuse_beside("--observe", "observe", "clip_rewards", *allowed, why="takes no choices about codes and times")
    limit, rewards = choices["horizon"], choices["reward_range"]
    if out is None or limit is None or rewards is None:
        raise click.UsageError("--observe goes with --out FILE, --horizon H (the longest episode) and --reward-range")
    done = prepare_observations(
        raw, out,
        observe=parse_observed(observe), columns=columns, rewards=rewards, limit=limit, users=users,
        clip_rewards=choices["clip_rewards"],
    )  # fmt: skip
    finish(done, describe_prepared)


def _refuse_beside(option: str, *allowed: str, why: str = "sets all choices itself") -> None:
    """Refuse choices beside an option that determines all of them.

    Raises:
        click.UsageError: A choice was given on the command line.
    """
    context = click.get_current_context()
    mine = {"raw", "out", "draft", "as_json", "draft_codebook", *allowed}
    given = [
        parameter.opts[0]
        for parameter in context.command.params
        if parameter.name not in mine
        and context.get_parameter_source(str(parameter.name)) is click.core.ParameterSource.COMMANDLINE
    ]
    if given:
        raise click.UsageError(f"{option} {why}: leave out {', '.join(given)}")
