"""One peer reads one query to its end, as a process of its own that bench/read.py measures.

Arguments: the peer, the connection string, the query, and `--checksum` for the run that
compares the cells (not measured). Prints `rows N` and then `checksum X`.
"""

import sys


def mssql_python(connection: str, query: str):
    """The Arrow reader of Microsoft's Python driver; the environment picks the core."""
    import mssql_python as driver

    driver.pooling(enabled=False)
    session = driver.connect(connection, autocommit=True)
    cursor = session.cursor()
    cursor.execute(query)
    yield from cursor.arrow_reader(batch_size=8192)


def arrow_odbc(connection: str, query: str):
    """arrow-odbc over Microsoft's ODBC driver; batches of 1000 rows are its fastest."""
    import arrow_odbc as driver

    yield from driver.read_arrow_batches_from_odbc(
        query=query, connection_string=connection, batch_size=1000)


PEERS = {"mssql-python": mssql_python, "mssql-python-rust": mssql_python,
         "arrow-odbc": arrow_odbc}


def main(peer: str, connection: str, query: str, *options: str) -> None:
    checksum = None
    if "--checksum" in options:
        from checksum import Checksum

        checksum = Checksum()
    row_count = 0
    for batch in PEERS[peer](connection, query):
        row_count += len(batch)
        if checksum:
            checksum.add(batch)
    print("rows", row_count)
    if checksum:
        print("checksum", checksum.text())


if __name__ == "__main__":
    main(*sys.argv[1:])
