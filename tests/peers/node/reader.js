// Reads one query through tedious and prints each row as a JSON array of canonical texts
// (tests/peers/values.py), null for NULL. Settings come in the environment.
"use strict";

let tedious;
try {
  tedious = require("tedious");
} catch (absent) {
  console.error(`tedious (npm package): ${absent.message.split("\n")[0]}`);
  process.exit(3);
}
const fs = require("node:fs");

function padded(number, digits) {
  return String(number).padStart(digits, "0");
}

// A JavaScript Date holds milliseconds; tedious adds what is below them as a fraction of a
// second, nanosecondsDelta.
function fraction(date) {
  const belowMs = Math.round((date.nanosecondsDelta || 0) * 1e7);
  return padded(date.getUTCMilliseconds() * 1e4 + belowMs, 7);
}

function moment(date, kind) {
  const day = [padded(date.getUTCFullYear(), 4), padded(date.getUTCMonth() + 1, 2),
               padded(date.getUTCDate(), 2)].join("-");
  const time = [date.getUTCHours(), date.getUTCMinutes(), date.getUTCSeconds()]
    .map((part) => padded(part, 2)).join(":") + "." + fraction(date);
  if (kind === "Date") return day;
  if (kind === "Time") return time;
  return kind === "DateTimeOffset" ? `${day} ${time} +00:00` : `${day} ${time}`;
}

function canonical(value, kind) {
  if (value === null) return null;
  if (typeof value === "boolean") return value ? "1" : "0";
  if (value instanceof Date) return moment(value, kind);
  if (Buffer.isBuffer(value)) return "0x" + value.toString("hex").toUpperCase();
  return String(value);
}

const environment = process.env;
const encrypt = { clear: false, tls: true, strict: "strict" }[environment.PEER_MODE];
const authority = environment.PEER_AUTHORITY;
const connection = new tedious.Connection({
  server: environment.PEER_HOST,
  authentication: {
    type: "default",
    options: { userName: environment.PEER_USER, password: environment.PEER_PASSWORD },
  },
  options: {
    port: Number(environment.PEER_PORT),
    database: environment.PEER_DATABASE,
    encrypt,
    trustServerCertificate: false,
    cryptoCredentialsDetails: authority ? { ca: fs.readFileSync(authority) } : {},
  },
});

function fail(error) {
  console.error(error.message);
  process.exit(1);
}

connection.connect((refused) => {
  if (refused) fail(refused);
  const request = new tedious.Request(environment.PEER_QUERY, (failed) => {
    if (failed) fail(failed);
    connection.close();
  });
  request.on("row", (columns) => {
    const texts = columns.map((column) =>
      canonical(column.value, column.metadata.type.name));
    console.log(JSON.stringify(texts));
  });
  connection.execSqlBatch(request);
});
