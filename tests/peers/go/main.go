// Reads one query through go-mssqldb and prints each row as a JSON array of canonical
// texts (tests/peers/values.py), null for NULL. Arguments: a DSN, a query; without a query
// it does the exercises.
package main

import (
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	mssql "github.com/microsoft/go-mssqldb"
)

// canonical is the text of one value; kind is the driver's name of the column's type.
func canonical(value any, kind string) (string, error) {
	switch v := value.(type) {
	case bool:
		if v {
			return "1", nil
		}
		return "0", nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), nil
	case string:
		return v, nil
	case time.Time:
		return moment(v, kind), nil
	case []byte:
		return fromBytes(v, kind)
	}
	return "", fmt.Errorf("no canonical text for %T of %s", value, kind)
}

// moment always has seven fraction digits where the type may have any.
func moment(v time.Time, kind string) string {
	switch kind {
	case "DATE":
		return v.Format("2006-01-02")
	case "TIME":
		return v.Format("15:04:05.0000000")
	case "DATETIMEOFFSET":
		return v.Format("2006-01-02 15:04:05.0000000 -07:00")
	}
	return v.Format("2006-01-02 15:04:05.0000000")
}

func fromBytes(v []byte, kind string) (string, error) {
	switch kind {
	case "UNIQUEIDENTIFIER":
		var id mssql.UniqueIdentifier
		if err := id.Scan(v); err != nil {
			return "", err
		}
		return id.String(), nil
	case "DECIMAL", "MONEY", "SMALLMONEY":
		return string(v), nil
	}
	return "0x" + strings.ToUpper(hex.EncodeToString(v)), nil
}

func read(dsn, query string) error {
	db, err := sql.Open("sqlserver", dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	rows, err := db.Query(query)
	if err != nil {
		return err
	}
	defer rows.Close()
	types, err := rows.ColumnTypes()
	if err != nil {
		return err
	}
	values := make([]any, len(types))
	places := make([]any, len(types))
	for i := range values {
		places[i] = &values[i]
	}
	output := json.NewEncoder(os.Stdout)
	output.SetEscapeHTML(false)
	for rows.Next() {
		if err := rows.Scan(places...); err != nil {
			return err
		}
		texts := make([]*string, len(values))
		for i, value := range values {
			if value == nil {
				continue
			}
			text, err := canonical(value, types[i].DatabaseTypeName())
			if err != nil {
				return fmt.Errorf("%s: %w", types[i].Name(), err)
			}
			texts[i] = &text
		}
		if err := output.Encode(texts); err != nil {
			return err
		}
	}
	return rows.Err()
}

func main() {
	var err error
	switch len(os.Args) {
	case 2:
		err = exercise(os.Args[1])
	case 3:
		err = read(os.Args[1], os.Args[2])
	default:
		err = errors.New("a DSN, please, and a query unless it is for the exercises")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
