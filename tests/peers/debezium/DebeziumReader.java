import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.format.Json;
import java.io.InputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Properties;

/**
 * Runs Debezium's connector in this process with the properties of a file, and prints each
 * event as one line of JSON: {"key": ..., "value": ...}. It ends when it is stopped, and with
 * exit code 1 when the connector gives up.
 */
public final class DebeziumReader {
  private static String line(ChangeEvent<String, String> event) {
    return "{\"destination\": \"" + event.destination() + "\", \"key\": " + event.key()
        + ", \"value\": " + event.value() + "}";
  }

  public static void main(String[] words) throws Exception {
    Properties properties = new Properties();
    try (InputStream file = Files.newInputStream(Path.of(words[0]))) {
      properties.load(file);
    }
    PrintStream output = new PrintStream(System.out, false, StandardCharsets.UTF_8);
    int[] exitCode = {0};
    DebeziumEngine<ChangeEvent<String, String>> engine =
        DebeziumEngine.create(Json.class)
            .using(properties)
            .using((success, message, error) -> {
              if (!success) {
                System.err.println("the connector gave up: " + message);
                exitCode[0] = 1;
              }
            })
            .notifying((List<ChangeEvent<String, String>> events,
                DebeziumEngine.RecordCommitter<ChangeEvent<String, String>> committer) -> {
              for (ChangeEvent<String, String> event : events) {
                output.println(line(event));
                committer.markProcessed(event);
              }
              committer.markBatchFinished();
              output.flush();
            })
            .build();
    engine.run();  // Until this process is stopped, or the connector gives up.
    System.exit(exitCode[0]);
  }

  private DebeziumReader() {}
}
