package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/golang-sql/civil"
	mssql "github.com/microsoft/go-mssqldb"
	"github.com/shopspring/decimal"
)

const manyRows = "SELECT a.id FROM dbo.all_types a CROSS JOIN dbo.all_types b " +
	"CROSS JOIN dbo.all_types c CROSS JOIN dbo.all_types d"

// student does the exercises (tests/peers/exercises.py) on one connection; the first
// failure ends them.
type student struct {
	ctx     context.Context
	session *sql.Conn
	err     error
}

func (s *student) say(name string, text any) {
	if s.err != nil {
		return
	}
	output := json.NewEncoder(os.Stdout)
	output.SetEscapeHTML(false)
	s.err = output.Encode([]string{name, fmt.Sprint(text)})
}

func (s *student) run(statement string) {
	if s.err == nil {
		_, s.err = s.session.ExecContext(s.ctx, statement)
	}
}

func (s *student) one(query string, parameters ...any) string {
	var text string
	if s.err == nil {
		s.err = s.session.QueryRowContext(s.ctx, query, parameters...).Scan(&text)
	}
	return text
}

// called gives the rows of a procedure, a query that is its name and nothing else.
func (s *student) called(procedure string, parameters ...any) [][]sql.NullString {
	if s.err != nil {
		return nil
	}
	rows, err := s.session.QueryContext(s.ctx, procedure, parameters...)
	if err != nil {
		s.err = err
		return nil
	}
	defer rows.Close()
	names, _ := rows.Columns()
	var found [][]sql.NullString
	for rows.Next() {
		row := make([]sql.NullString, len(names))
		places := make([]any, len(names))
		for i := range row {
			places[i] = &row[i]
		}
		if s.err = rows.Scan(places...); s.err != nil {
			return nil
		}
		found = append(found, row)
	}
	s.err = rows.Err()
	return found
}

func column(rows [][]sql.NullString, index int) string {
	var texts []string
	for _, row := range rows {
		texts = append(texts, row[index].String)
	}
	return strings.Join(texts, ",")
}

func (s *student) parameters() {
	var (
		sum           int
		text          string
		bytes         []byte
		null          sql.NullInt64
		number        string
		day           time.Time
		long, binary  int
		numbers       []string
		id            mssql.UniqueIdentifier
		half, badHalf = decimal.NewFromString("1234.5")
	)
	price, err := decimal.NewFromString("12.34")
	if err = errors.Join(err, badHalf, id.Scan("6F9619FF-8B86-D011-B42D-00C04FC964FF")); err != nil {
		s.err = err
		return
	}
	leapDay := civil.Date{Year: 2024, Month: 2, Day: 29}
	s.err = s.session.QueryRowContext(s.ctx, "SELECT @p1 + 1, @p2, @p3, CAST(@p4 AS int), @p5, @p6",
		4, "ü日", []byte{1}, nil, price, leapDay).Scan(&sum, &text, &bytes, &null, &number, &day)
	shown := "NULL"
	if null.Valid {
		shown = "value"
	}
	s.say("parameters", fmt.Sprintf("%d|%s|0x%x|%s|%s|%s", sum, text, bytes, shown, number,
		day.Format("2006-01-02")))
	query := regexp.MustCompile(`\{(\d+)\}`).ReplaceAllString(os.Getenv("PEER_EVERY_TYPE"), "@p$1")
	s.say("every type", s.one(query, int64(9007199254740993), true, 0.1, half, leapDay,
		civil.Time{Hour: 23, Minute: 59, Second: 58},
		civil.DateTime{Date: leapDay,
			Time: civil.Time{Hour: 23, Minute: 59, Second: 58, Nanosecond: 123_000_000}},
		id, "Ωü日", []byte{0, 255, 127}))
	if s.err != nil {
		return
	}
	statement, err := s.session.PrepareContext(s.ctx, "SELECT @p1 * 2")
	if s.err = err; err != nil {
		return
	}
	defer statement.Close()
	for i := 0; i < 3 && s.err == nil; i++ {
		var twice string
		s.err = statement.QueryRowContext(s.ctx, i).Scan(&twice)
		numbers = append(numbers, twice)
	}
	s.say("prepared", strings.Join(numbers, ","))
	if s.err == nil {
		s.err = s.session.QueryRowContext(s.ctx, "SELECT DATALENGTH(@p1), DATALENGTH(@p2)",
			strings.Repeat("x", 100000), make([]byte, 100000)).Scan(&long, &binary)
	}
	s.say("long", fmt.Sprintf("%d|%d", long, binary))
}

func (s *student) catalogue() {
	s.say("tables", column(s.called("sp_tables", sql.Named("table_name", "all%"),
		sql.Named("table_owner", "dbo")), 2))
	s.say("columns", len(s.called("sp_columns", sql.Named("table_name", "all_types"))))
	s.say("key", column(s.called("sp_pkeys", sql.Named("table_name", "all_types")), 3))
	s.say("types", len(s.called("sp_datatype_info")))
	s.say("procedures", len(s.called("sp_stored_procedures")))
}

// transaction runs statements in a transaction of the driver's.
func (s *student) transaction(end func(*sql.Tx) error, statements ...string) {
	if s.err != nil {
		return
	}
	transaction, err := s.session.BeginTx(s.ctx, nil)
	if s.err = err; err != nil {
		return
	}
	for _, statement := range statements {
		if _, s.err = transaction.ExecContext(s.ctx, statement); s.err != nil {
			return
		}
	}
	s.err = end(transaction)
}

func (s *student) transactions() {
	// Every statement outside of a transaction resets the session, and temporary tables
	// with it, so this table is one of the database.
	s.run("CREATE TABLE dbo.exercise_go (a int)")
	const counted = "SELECT COUNT(*) FROM dbo.exercise_go"
	insert := func(number int) string {
		return fmt.Sprintf("INSERT dbo.exercise_go VALUES (%d)", number)
	}
	s.transaction((*sql.Tx).Rollback, insert(1))
	s.say("rollback", s.one(counted))
	s.transaction((*sql.Tx).Commit, insert(1))
	s.say("commit", s.one(counted))
	s.transaction((*sql.Tx).Commit, insert(2), "SAVE TRANSACTION kept", insert(3),
		"ROLLBACK TRANSACTION kept")
	s.say("savepoint", s.one(counted))
	s.run("DROP TABLE dbo.exercise_go")
}

func (s *student) cancelling() {
	if s.err != nil {
		return
	}
	// A deadline would do as well, but counts as a network's error: the driver gives up the
	// connection after it.
	brief, cancel := context.WithCancel(s.ctx)
	defer time.AfterFunc(300*time.Millisecond, cancel).Stop()
	if _, err := s.session.ExecContext(brief, "WAITFOR DELAY '00:10:00'"); err != nil {
		s.say("cancelled", "yes")
	} else {
		s.say("cancelled", "no")
	}
	s.say("after cancel", s.one("SELECT 8"))
	if s.err != nil {
		return
	}
	rows, err := s.session.QueryContext(s.ctx, manyRows)
	if s.err = err; err != nil {
		return
	}
	rows.Next()
	rows.Close()
	s.say("left unread", s.one("SELECT 9"))
}

func (s *student) errors() {
	var said mssql.Error
	if _, err := s.session.ExecContext(s.ctx, "SELECT * FROM dbo.no_such_table"); errors.As(err, &said) {
		s.say("error", said.Number)
	}
	if _, err := s.session.ExecContext(s.ctx, "\n\nRAISERROR(N'told', 12, 7)"); errors.As(err, &said) {
		s.say("told", fmt.Sprintf("%d|%d|%d|%d", said.Number, said.Class, said.State, said.LineNo))
	}
	s.say("after error", s.one("SELECT 7"))
}

func exercise(dsn string) error {
	db, err := sql.Open("sqlserver", dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	ctx := context.Background()
	session, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer session.Close()
	s := student{ctx: ctx, session: session}
	s.parameters()
	s.catalogue()
	s.transactions()
	s.cancelling()
	s.errors()
	return s.err
}
