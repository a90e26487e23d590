"""Draws from a space that several arms share, so that luck in the draws is no difference between them."""

from ablab.search.sampling import StatelessSampler
from ablab.search.space import Space


def draws(space: Space, count: int, seed: int) -> list[tuple[str, ...]]:
    """Return the words of independent random draws; a longer list begins with the shorter one."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=StatelessSampler("random", seed, several_at_a_time=False))
    distributions = space.distributions()
    return [space.words(study.ask(distributions).params) for _ in range(count)]
