// The exercises (tests/peers/exercises.py) by tedious.
"use strict";

let tedious;
try {
  tedious = require("tedious");
} catch (absent) {
  console.error(`tedious (npm package): ${absent.message.split("\n")[0]}`);
  process.exit(3);
}
const { Connection, Request, TYPES } = tedious;
const environment = process.env;
const connection = new Connection({
  server: environment.PEER_HOST,
  authentication: {
    type: "default",
    options: { userName: environment.PEER_USER, password: environment.PEER_PASSWORD },
  },
  options: {
    port: Number(environment.PEER_PORT),
    database: environment.PEER_DATABASE,
    encrypt: false,
  },
});

function say(name, text) {
  console.log(JSON.stringify([name, String(text)]));
}

// Runs one request by `method`; gives its rows as arrays of values.
function run(method, sql, parameters = [], started = () => {}) {
  return new Promise((resolve, reject) => {
    const rows = [];
    const request = new Request(sql, (failed) => (failed ? reject(failed) : resolve(rows)));
    for (const [name, type, value, options] of parameters) {
      request.addParameter(name, type, value, options);
    }
    request.on("row", (columns) => rows.push(columns.map((column) => column.value)));
    connection[method](request);
    started(request);
  });
}

function call(method, ...words) {
  return new Promise((resolve, reject) => {
    connection[method]((failed) => (failed ? reject(failed) : resolve()), ...words);
  });
}

function prepared() {
  return new Promise((resolve, reject) => {
    const found = [];
    let number = 0;
    const request = new Request("SELECT @a * 2", (failed) => {
      if (failed) return reject(failed);
      if (number === 3) {
        request.callback = (last) => (last ? reject(last) : resolve(found.join(",")));
        return connection.unprepare(request);
      }
      return connection.execute(request, { a: number++ });
    });
    request.addParameter("a", TYPES.Int);
    request.on("row", (columns) => found.push(columns[0].value));
    request.on("prepared", () => connection.execute(request, { a: number++ }));
    connection.prepare(request);
  });
}

async function parameters() {
  const [row] = await run("execSql", "SELECT @a + 1, @b, @c, CAST(@d AS int), @e, @f", [
    ["a", TYPES.Int, 4],
    ["b", TYPES.NVarChar, "ü日"],
    ["c", TYPES.VarBinary, Buffer.from([1])],
    ["d", TYPES.Int, null],
    ["e", TYPES.Decimal, 12.34, { precision: 4, scale: 2 }],
    ["f", TYPES.Date, new Date("2024-02-29T00:00:00Z")],
  ]);
  say("parameters", [row[0], row[1], "0x" + row[2].toString("hex"), row[3] ?? "NULL", row[4],
                     row[5].toISOString().slice(0, 10)].join("|"));
  say("every type", (await everyType())[0][0]);
  say("prepared", await prepared());
  const [long] = await run("execSql", "SELECT DATALENGTH(@a), DATALENGTH(@b)", [
    ["a", TYPES.NVarChar, "x".repeat(100000)],
    ["b", TYPES.VarBinary, Buffer.alloc(100000)],
  ]);
  say("long", long.join("|"));
}

function everyType() {
  const query = environment.PEER_EVERY_TYPE.replace(/\{(\d+)\}/g, "@p$1");
  return run("execSql", query, [
    ["p1", TYPES.BigInt, 9007199254740993n],
    ["p2", TYPES.Bit, true],
    ["p3", TYPES.Float, 0.1],
    ["p4", TYPES.Decimal, 1234.5, { precision: 9, scale: 1 }],
    ["p5", TYPES.Date, new Date("2024-02-29T00:00:00Z")],
    ["p6", TYPES.Time, new Date("1970-01-01T23:59:58Z"), { scale: 0 }],
    ["p7", TYPES.DateTime2, new Date("2024-02-29T23:59:58.123Z"), { scale: 3 }],
    ["p8", TYPES.UniqueIdentifier, "6F9619FF-8B86-D011-B42D-00C04FC964FF"],
    ["p9", TYPES.NVarChar, "Ωü日"],
    ["p10", TYPES.VarBinary, Buffer.from([0, 255, 127])],
  ]);
}

async function transactions() {
  const count = async () => (await run("execSqlBatch", "SELECT COUNT(*) FROM #t"))[0][0];
  await run("execSqlBatch", "CREATE TABLE #t (a int)");
  await call("beginTransaction");
  await run("execSqlBatch", "INSERT #t VALUES (1)");
  await call("rollbackTransaction");
  say("rollback", await count());
  await call("beginTransaction");
  await run("execSqlBatch", "INSERT #t VALUES (1)");
  await call("commitTransaction");
  say("commit", await count());
  await call("beginTransaction");
  await run("execSqlBatch", "INSERT #t VALUES (2)");
  await call("saveTransaction", "kept");
  await run("execSqlBatch", "INSERT #t VALUES (3)");
  await call("rollbackTransaction", "kept");
  say("savepoint", await count());
  await call("commitTransaction");
}

async function cancelling() {
  const cancelled = await run("execSqlBatch", "WAITFOR DELAY '00:10:00'", [],
                              () => setImmediate(() => connection.cancel()))
    .then(() => "no", (failure) => (failure.code === "ECANCEL" ? "yes" : failure.message));
  say("cancelled", cancelled);
  say("after cancel", (await run("execSql", "SELECT 8"))[0][0]);
  await run("execSql", "SELECT * FROM dbo.no_such_table").catch((failure) =>
    say("error", failure.number));
  await run("execSqlBatch", "\n\nRAISERROR(N'told', 12, 7)").catch((failure) =>
    say("told", [failure.number, failure.class, failure.state, failure.lineNumber].join("|")));
  say("after error", (await run("execSql", "SELECT 7"))[0][0]);
}

connection.connect(async (refused) => {
  try {
    if (refused) throw refused;
    await parameters();
    await transactions();
    await cancelling();
    connection.close();
  } catch (failure) {
    console.error(failure.message);
    process.exit(1);
  }
});
