import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.InputStream;
import java.io.OutputStream;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.format.DateTimeFormatter;
import java.util.HexFormat;
import java.util.Map;
import java.util.Properties;

/**
 * Reads one query through mssql-jdbc and prints each row as a JSON array of canonical texts
 * (tests/peers/values.py), null for NULL. Settings come in the environment.
 */
public final class Reader {
  private static final String STORE_PASSWORD = "trusted";
  private static final DateTimeFormatter TIME = DateTimeFormatter.ofPattern("HH:mm:ss.SSSSSSS");
  private static final DateTimeFormatter MOMENT =
      DateTimeFormatter.ofPattern("uuuu-MM-dd HH:mm:ss.SSSSSSS");
  private static final DateTimeFormatter OFFSET_MOMENT =
      DateTimeFormatter.ofPattern("uuuu-MM-dd HH:mm:ss.SSSSSSS xxx");

  private static String canonical(ResultSet rows, int place, String type) throws SQLException {
    switch (type) {
      case "date":
        return text(rows.getObject(place, LocalDate.class));
      case "time":
        LocalTime time = rows.getObject(place, LocalTime.class);
        return time == null ? null : TIME.format(time);
      case "datetime":
      case "smalldatetime":
      case "datetime2":
        LocalDateTime moment = rows.getObject(place, LocalDateTime.class);
        return moment == null ? null : MOMENT.format(moment);
      case "datetimeoffset":
        OffsetDateTime offset = rows.getObject(place, OffsetDateTime.class);
        return offset == null ? null : OFFSET_MOMENT.format(offset);
      default:
        return text(rows.getObject(place));
    }
  }

  private static String text(Object value) {
    if (value == null) return null;
    if (value instanceof Boolean) return (Boolean) value ? "1" : "0";
    if (value instanceof BigDecimal) return ((BigDecimal) value).toPlainString();
    if (value instanceof byte[]) {
      return "0x" + HexFormat.of().withUpperCase().formatHex((byte[]) value);
    }
    return value.toString();
  }

  private static String quoted(String text) {
    if (text == null) return "null";
    StringBuilder made = new StringBuilder("\"");
    for (char unit : text.toCharArray()) {
      if (unit == '"' || unit == '\\') made.append('\\');
      if (unit < ' ') {
        made.append(String.format("\\u%04x", (int) unit));
      } else {
        made.append(unit);
      }
    }
    return made.append('"').toString();
  }

  /** A trust store with this one authority in it, as the driver wants it: a file. */
  private static String trusting(String pem) throws Exception {
    KeyStore store = KeyStore.getInstance("PKCS12");
    store.load(null, null);
    try (InputStream certificate = new FileInputStream(pem)) {
      store.setCertificateEntry("authority",
          CertificateFactory.getInstance("X.509").generateCertificate(certificate));
    }
    Path file = Files.createTempFile("trusted", ".p12");
    file.toFile().deleteOnExit();
    try (OutputStream written = new FileOutputStream(file.toFile())) {
      store.store(written, STORE_PASSWORD.toCharArray());
    }
    return file.toString();
  }

  static Properties properties(Map<String, String> settings) throws Exception {
    Properties made = new Properties();
    made.setProperty("serverName", settings.get("PEER_HOST"));
    made.setProperty("portNumber", settings.get("PEER_PORT"));
    made.setProperty("user", settings.get("PEER_USER"));
    made.setProperty("password", settings.get("PEER_PASSWORD"));
    made.setProperty("databaseName", settings.get("PEER_DATABASE"));
    String mode = settings.get("PEER_MODE");
    made.setProperty("encrypt",
        mode.equals("login only") ? "false" : mode.equals("tls") ? "true" : "strict");
    String authority = settings.get("PEER_AUTHORITY");
    if (!authority.isEmpty()) {
      made.setProperty("trustStore", trusting(authority));
      made.setProperty("trustStorePassword", STORE_PASSWORD);
      made.setProperty("hostNameInCertificate", "localhost");
    }
    return made;
  }

  public static void main(String[] words) throws Exception {
    Map<String, String> settings = System.getenv();
    PrintStream output = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    try (Connection session =
            DriverManager.getConnection("jdbc:sqlserver://", properties(settings));
        Statement statement = session.createStatement();
        ResultSet rows = statement.executeQuery(settings.get("PEER_QUERY"))) {
      ResultSetMetaData columns = rows.getMetaData();
      while (rows.next()) {
        StringBuilder line = new StringBuilder("[");
        for (int place = 1; place <= columns.getColumnCount(); ++place) {
          if (place > 1) line.append(", ");
          line.append(quoted(canonical(rows, place, columns.getColumnTypeName(place))));
        }
        output.println(line.append(']'));
      }
    }
    output.flush();
  }

  private Reader() {}
}
