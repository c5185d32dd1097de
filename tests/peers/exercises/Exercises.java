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
      Savepoint kept = session.setSavepoint();
      statement.execute("INSERT #t VALUES (2)");
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
  }

  public static void main(String[] words) throws Exception {
    Properties settings = Reader.properties(System.getenv());
    try (Connection session = DriverManager.getConnection("jdbc:sqlserver://", settings)) {
      parameters(session);
      catalogue(session, settings.getProperty("databaseName"));
      transactions(session);
      cancelling(session);
    }
  }

  private Exercises() {}
}
