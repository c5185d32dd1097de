//! The exercises (tests/peers/exercises.py) by tiberius: its own transaction requests,
//! parameters by sp_executesql, the catalogue by T-SQL.

use std::env;

use chrono::{NaiveDate, NaiveTime};
use tiberius::numeric::Numeric;
use tiberius::{Client, Row, ToSql, Uuid};
use tokio::net::TcpStream;
use tokio_util::compat::Compat;

use crate::Outcome;

type Session = Client<Compat<TcpStream>>;

const MANY: &str = "SELECT a.id FROM dbo.all_types a CROSS JOIN dbo.all_types b \
                    CROSS JOIN dbo.all_types c CROSS JOIN dbo.all_types d";
const COUNT: &str = "SELECT COUNT(*) FROM #t";

fn say(name: &str, text: impl ToString) -> Outcome<()> {
    println!("{}", serde_json::to_string(&[name, &text.to_string()])?);
    Ok(())
}

async fn rows(session: &mut Session, sql: &str, parameters: &[&dyn ToSql]) -> Outcome<Vec<Row>> {
    Ok(session.query(sql, parameters).await?.into_first_result().await?)
}

async fn number(session: &mut Session, sql: &str, parameters: &[&dyn ToSql]) -> Outcome<i32> {
    let found = rows(session, sql, parameters).await?;
    Ok(found[0].get::<i32, _>(0).ok_or("NULL")?)
}

async fn run(session: &mut Session, sql: &str) -> Outcome<()> {
    session.simple_query(sql).await?.into_results().await?;
    Ok(())
}

async fn parameters(session: &mut Session) -> Outcome<()> {
    let day = NaiveDate::from_ymd_opt(2024, 2, 29).ok_or("no date")?;
    let moment = day.and_hms_milli_opt(23, 59, 58, 123).ok_or("no moment")?;
    let time = NaiveTime::from_hms_opt(23, 59, 58).ok_or("no time")?;
    let id = Uuid::parse_str("6F9619FF-8B86-D011-B42D-00C04FC964FF")?;
    let bytes: &[u8] = &[1];
    let found = rows(
        session,
        "SELECT @P1 + 1, @P2, @P3, CAST(@P4 AS int), @P5, @P6",
        &[&4i32, &"ü日", &bytes, &None::<i32>, &Numeric::new_with_scale(1234, 2), &day],
    )
    .await?;
    let row = &found[0];
    let held: &[u8] = row.get(2).ok_or("NULL")?;
    let digits: String = held.iter().map(|byte| format!("{byte:02x}")).collect();
    let null = row.get::<i32, _>(3).map_or("NULL".to_string(), |v| v.to_string());
    let price: Numeric = row.get(4).ok_or("NULL")?;
    say(
        "parameters",
        format!(
            "{}|{}|0x{digits}|{null}|{}|{}",
            row.get::<i32, _>(0).ok_or("NULL")?,
            row.get::<&str, _>(1).ok_or("NULL")?,
            crate::decimal(price.value(), price.scale().into()),
            row.get::<NaiveDate, _>(5).ok_or("NULL")?,
        ),
    )?;
    let every_type = env::var("PEER_EVERY_TYPE")?.replace('{', "@P").replace('}', "");
    let bytes: &[u8] = &[0, 255, 127];
    let found = rows(
        session,
        &every_type,
        &[
            &9_007_199_254_740_993i64, &true, &0.1f64, &Numeric::new_with_scale(12345, 1), &day,
            &time, &moment, &id, &"Ωü日", &bytes,
        ],
    )
    .await?;
    say("every type", found[0].get::<&str, _>(0).ok_or("NULL")?)?;
    let mut twice = Vec::new();
    for factor in 0..3i32 {
        twice.push(number(session, "SELECT @P1 * 2", &[&factor]).await?.to_string());
    }
    say("prepared", twice.join(","))?;
    let found = rows(
        session,
        "SELECT CAST(DATALENGTH(@P1) AS int), CAST(DATALENGTH(@P2) AS int)",
        &[&"x".repeat(100_000), &vec![0u8; 100_000]],
    )
    .await?;
    let [text, binary] = [0, 1].map(|place| found[0].get::<i32, _>(place).unwrap_or(-1));
    say("long", format!("{text}|{binary}"))
}

async fn catalogue(session: &mut Session) -> Outcome<()> {
    fn column(rows: &[Row], place: usize) -> String {
        let texts: Vec<&str> = rows.iter().filter_map(|row| row.get(place)).collect();
        texts.join(",")
    }
    let tables = rows(session, "EXEC sp_tables @P1, @P2", &[&"all%", &"dbo"]).await?;
    say("tables", column(&tables, 2))?;
    let columns = rows(session, "EXEC sp_columns @P1", &[&"all_types"]).await?;
    say("columns", columns.len())?;
    let key = rows(session, "EXEC sp_pkeys @P1", &[&"all_types"]).await?;
    say("key", column(&key, 3))?;
    say("types", rows(session, "EXEC sp_datatype_info", &[]).await?.len())?;
    say("procedures", rows(session, "EXEC sp_stored_procedures", &[]).await?.len())
}

async fn transactions(session: &mut Session) -> Outcome<()> {
    run(session, "CREATE TABLE #t (a int)").await?;
    session.begin_transaction().await?;
    run(session, "INSERT #t VALUES (1)").await?;
    session.rollback_transaction().await?;
    say("rollback", number(session, COUNT, &[]).await?)?;
    session.begin_transaction().await?;
    run(session, "INSERT #t VALUES (1)").await?;
    session.commit_transaction().await?;
    say("commit", number(session, COUNT, &[]).await?)?;
    session.begin_transaction().await?;
    for sql in ["INSERT #t VALUES (2)", "SAVE TRANSACTION kept", "INSERT #t VALUES (3)",
                "ROLLBACK TRANSACTION kept"] {
        run(session, sql).await?;
    }
    session.commit_transaction().await?;
    say("savepoint", number(session, COUNT, &[]).await?)
}

async fn unread(session: &mut Session) -> Outcome<()> {
    drop(session.simple_query(MANY).await?);
    say("left unread", number(session, "SELECT 9", &[]).await?)
}

async fn errors(session: &mut Session) -> Outcome<()> {
    if let Err(failure) = rows(session, "SELECT * FROM dbo.no_such_table", &[]).await {
        if let Some(tiberius::error::Error::Server(said)) = failure.downcast_ref() {
            say("error", said.code())?;
        }
    }
    if let Err(failure) = run(session, "\n\nRAISERROR(N'told', 12, 7)").await {
        if let Some(tiberius::error::Error::Server(said)) = failure.downcast_ref() {
            say("told", format!("{}|{}|{}|{}", said.code(), said.class(), said.state(), said.line()))?;
        }
    }
    say("after error", number(session, "SELECT 7", &[]).await?)
}

pub async fn exercise(session: &mut Session) -> Outcome<()> {
    parameters(session).await?;
    catalogue(session).await?;
    transactions(session).await?;
    errors(session).await?;
    unread(session).await
}
