"""Keep a team's budget in a ledger.

An officer states the policy of a dataset and grants a part of it to a team. A charge
that fits is written before the noise is drawn; one that does not fit is refused, and
spends nothing.
"""

from tempfile import TemporaryDirectory

from privcheck.ledger import Book, create_store

unit = "rider, 1 trajectory, replace-one, central"
terms = {"dataset": "trips", "delta": "1e-6"}
with TemporaryDirectory() as folder:
    store = create_store(f"{folder}/budget.db")
    book, token = Book.init(store)
    officer = book.find_actor(token)
    book.set_policy(officer, epsilon="8", unit=unit, **terms)
    book.grant(officer, name="team-a", currency="rho", cap="0.5", **terms)
    for job, rho in (("job-1", "0.4"), ("job-2", "0.2"), ("job-3", "0.1")):
        event = {"type": "gaussian", "rho": rho}
        answer = book.charge(
            officer, grant="team-a", event=event, unit="dataset", key=job
        )
        print(job, answer.state, answer.reason or f"{answer.balance['free']} is left")
    print("problems in the chain of rows:", len(book.verify(officer).problems))
    store.close()
