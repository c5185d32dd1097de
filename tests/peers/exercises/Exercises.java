import com.microsoft.sqlserver.jdbc.SQLServerError;
import com.microsoft.sqlserver.jdbc.SQLServerException;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.Date;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.sql.Statement;
import java.sql.Time;
import java.sql.Timestamp;
import java.sql.Types;
import java.util.Properties;

/** The exercises (tests/peers/exercises.py) by mssql-jdbc. */
public final class Exercises {
  private static final String MANY =
      "SELECT a.id FROM dbo.all_types a CROSS JOIN dbo.all_types b "
          + "CROSS JOIN dbo.all_types c CROSS JOIN dbo.all_types d";
  private static final PrintStream OUTPUT =
      new PrintStream(System.out, true, StandardCharsets.UTF_8);

  private static void say(String name, Object text) {
    OUTPUT.println("[\"" + name + "\", \"" + text + "\"]");
  }

  private static String one(ResultSet rows) throws SQLException {
    rows.next();
    return rows.getString(1);
  }

  private static int count(ResultSet rows) throws SQLException {
    int count = 0;
    while (rows.next()) ++count;
    return count;
  }

  private static void parameters(Connection session) throws SQLException {
    try (PreparedStatement statement =
        session.prepareStatement("SELECT ? + 1, ?, ?, CAST(? AS int), ?, ?")) {
      statement.setInt(1, 4);
      statement.setString(2, "ü日");
      statement.setBytes(3, new byte[] {1});
      statement.setNull(4, Types.INTEGER);
      statement.setBigDecimal(5, new BigDecimal("12.34"));
      statement.setDate(6, Date.valueOf("2024-02-29"));
      ResultSet rows = statement.executeQuery();
      rows.next();
      say("parameters", rows.getInt(1) + "|" + rows.getString(2) + "|0x" + rows.getString(3)
          + "|" + (rows.getObject(4) == null ? "NULL" : "value") + "|" + rows.getBigDecimal(5)
          + "|" + rows.getDate(6));
    }
    everyType(session);
    try (PreparedStatement statement = session.prepareStatement("SELECT ? * 2")) {
      StringBuilder found = new StringBuilder();
      for (int number = 0; number < 3; ++number) {
        statement.setInt(1, number);
        found.append(number > 0 ? "," : "").append(one(statement.executeQuery()));
      }
      say("prepared", found);
    }
    try (PreparedStatement statement =
        session.prepareStatement("SELECT DATALENGTH(?), DATALENGTH(?)")) {
      statement.setString(1, "x".repeat(100000));
      statement.setBytes(2, new byte[100000]);
      ResultSet rows = statement.executeQuery();
      rows.next();
      say("long", rows.getLong(1) + "|" + rows.getLong(2));
    }
  }

  private static void everyType(Connection session) throws SQLException {
    String query = System.getenv("PEER_EVERY_TYPE").replaceAll("\\{\\d+\\}", "?");
    try (PreparedStatement statement = session.prepareStatement(query)) {
      statement.setLong(1, 9007199254740993L);
      statement.setBoolean(2, true);
      statement.setDouble(3, 0.1);
      statement.setBigDecimal(4, new BigDecimal("1234.5"));
      statement.setDate(5, Date.valueOf("2024-02-29"));
      statement.setTime(6, Time.valueOf("23:59:58"));
      statement.setTimestamp(7, Timestamp.valueOf("2024-02-29 23:59:58.123"));
      statement.setObject(8, "6F9619FF-8B86-D011-B42D-00C04FC964FF",
          microsoft.sql.Types.GUID);
      statement.setString(9, "Ωü日");
      statement.setBytes(10, new byte[] {0, -1, 127});
      say("every type", one(statement.executeQuery()));
    }
  }

  private static void catalogue(Connection session, String database) throws SQLException {
    DatabaseMetaData asked = session.getMetaData();
    ResultSet tables = asked.getTables(database, "dbo", "all%", new String[] {"TABLE"});
    tables.next();
    say("tables", tables.getString("TABLE_NAME"));
    say("columns", count(asked.getColumns(database, "dbo", "all_types", "%")));
    ResultSet keys = asked.getPrimaryKeys(database, "dbo", "all_types");
    keys.next();
    say("key", keys.getString("COLUMN_NAME"));
    say("types", count(asked.getTypeInfo()));
    say("procedures", count(asked.getProcedures(null, null, "%")));
  }

  private static void transactions(Connection session) throws SQLException {
    try (Statement statement = session.createStatement()) {
      statement.execute("CREATE TABLE #t (a int)");
      session.setAutoCommit(false);
      statement.execute("INSERT #t VALUES (1)");
      session.rollback();
      say("rollback", one(statement.executeQuery("SELECT COUNT(*) FROM #t")));
      statement.execute("INSERT #t VALUES (1)");
      session.commit();
      session.rollback();
      say("commit", one(statement.executeQuery("SELECT COUNT(*) FROM #t")));
      statement.execute("INSERT #t VALUES (2)");
      Savepoint kept = session.setSavepoint();
      statement.execute("INSERT #t VALUES (3)");
      session.rollback(kept);
      say("savepoint", one(statement.executeQuery("SELECT COUNT(*) FROM #t")));
      session.commit();
      session.setAutoCommit(true);
    }
  }

  private static void cancelling(Connection session) throws SQLException {
    try (Statement statement = session.createStatement()) {
      statement.setQueryTimeout(1);
      try {
        statement.execute("WAITFOR DELAY '00:10:00'");
        say("cancelled", "no");
      } catch (SQLException expected) {
        say("cancelled", "yes");
      }
    }
    try (Statement statement = session.createStatement()) {
      say("after cancel", one(statement.executeQuery("SELECT 8")));
    }
    try (Statement statement = session.createStatement()) {
      statement.executeQuery(MANY).next();
    }
    try (Statement statement = session.createStatement()) {
      say("left unread", one(statement.executeQuery("SELECT 9")));
      statement.executeQuery("SELECT * FROM dbo.no_such_table");
    } catch (SQLException failure) {
      say("error", failure.getErrorCode());
    }
    try (Statement statement = session.createStatement()) {
      statement.execute("\n\nRAISERROR(N'told', 12, 7)");
    } catch (SQLServerException failure) {
      SQLServerError said = failure.getSQLServerError();
      say("told", said.getErrorNumber() + "|" + said.getErrorSeverity() + "|"
          + said.getErrorState() + "|" + said.getLineNumber());
    }
    try (Statement statement = session.createStatement()) {
      say("after error", one(statement.executeQuery("SELECT 7")));
    }
  }

  public static void main(String[] words) throws Exception {
    Properties settings = Reader.properties(System.getenv());
    // Otherwise a time goes as the datetime of 1970, which equals no time.
    settings.setProperty("sendTimeAsDatetime", "false");
    try (Connection session = DriverManager.getConnection("jdbc:sqlserver://", settings)) {
      parameters(session);
      catalogue(session, settings.getProperty("databaseName"));
      transactions(session);
      cancelling(session);
    }
  }

  private Exercises() {}
}
