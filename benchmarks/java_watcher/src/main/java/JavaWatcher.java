import com.google.api.core.ApiService;
import com.google.cloud.Timestamp;
import com.google.cloud.spanner.DatabaseId;
import com.google.cloud.spanner.Spanner;
import com.google.cloud.spanner.SpannerOptions;
import com.google.cloud.spanner.Statement;
import com.google.cloud.spanner.Value;
import com.google.cloud.spanner.watcher.FixedShardProvider;
import com.google.cloud.spanner.watcher.SpannerCommitTimestampRepository;
import com.google.cloud.spanner.watcher.SpannerTableChangeWatcher.Row;
import com.google.cloud.spanner.watcher.SpannerTableTailer;
import com.google.cloud.spanner.watcher.TableId;
import com.google.common.util.concurrent.MoreExecutors;
import com.sun.management.OperatingSystemMXBean;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import org.threeten.bp.Duration;

/**
 * Drives the published change watcher as a system of benchmarks/: arguments are name=value, as
 * benchmarks/systems/java.py writes them.
 *
 * <p>Every delivered row goes to a file of little-endian records (table, key, version, commit
 * timestamp, arrival), the CPU time to another (moment, CPU time), all in microseconds.
 */
public final class JavaWatcher {
  private static final int RECORDS_BUFFERED = 4_096;
  private static final int FIELDS = 5;
  private static final long LOOK_EVERY_MILLIS = 20L;

  private final Map<String, String> options = new HashMap<>();
  private final ByteBuffer buffer =
      ByteBuffer.allocate(RECORDS_BUFFERED * FIELDS * Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);
  private final OutputStream delivered;
  private final OutputStream cpu;
  private long rows;
  private volatile Throwable failure;

  private JavaWatcher(String[] arguments) throws IOException {
    for (String argument : arguments) {
      int equals = argument.indexOf('=');
      options.put(argument.substring(0, equals), argument.substring(equals + 1));
    }
    delivered = new FileOutputStream(options.get("delivered"), true);
    cpu = new FileOutputStream(options.get("cpu"), true);
  }

  public static void main(String[] arguments) throws Exception {
    long began = now();
    new JavaWatcher(arguments).run(began);
  }

  private void run(long began) throws Exception {
    logCpu();
    DatabaseId id = DatabaseId.of(options.get("database"));
    SpannerOptions.Builder builder =
        SpannerOptions.newBuilder().setProjectId(id.getInstanceId().getProject());
    try (Spanner spanner = builder.build().getService()) {
      String[] tables = options.get("tables").split(",");
      String[] indexes = options.get("indexes").split(",");
      List<SpannerTableTailer> tailers = new ArrayList<>();
      for (int place = 0; place < tables.length; place++) {
        tailers.add(tailer(spanner, TableId.of(id, tables[place]), indexes[place], place));
      }
      tailers.forEach(ApiService::startAsync);
      tailers.forEach(ApiService::awaitRunning);
      logCpu();
      announce(Path.of(options.get("ready")), Long.toString(began));
      for (SpannerTableTailer tailer : tailers) {
        awaitDrained(tailer);
      }
      tailers.forEach(ApiService::stopAsync);
      tailers.forEach(ApiService::awaitTerminated);
      flush();
      logCpu();
    }
  }

  private SpannerTableTailer tailer(
      Spanner spanner, TableId table, String index, int place) {
    SpannerTableTailer tailer =
        SpannerTableTailer.newBuilder(spanner, table)
            .setCommitTimestampColumn(options.get("timestamp"))
            .setShardProvider(shards())
            .setTableHint("@{FORCE_INDEX=`" + index + "`}")
            .setLimit(Long.parseLong(options.get("limit")))
            .setPollInterval(Duration.ofMillis(Long.parseLong(options.get("interval"))))
            .setFallbackToWithQuerySeconds(Integer.parseInt(options.get("with_query_after")))
            .setCommitTimestampRepository(
                SpannerCommitTimestampRepository.newBuilder(spanner, table.getDatabaseId())
                    .setCommitTimestampsTable(options.get("positions"))
                    .setInitialCommitTimestamp(Timestamp.parseTimestamp(options.get("since")))
                    .build())
            .build();
    tailer.addCallback((from, row, commitTimestamp) -> received(place, row, commitTimestamp));
    tailer.addListener(
        new ApiService.Listener() {
          @Override
          public void failed(ApiService.State from, Throwable cause) {
            failure = cause;
          }
        },
        MoreExecutors.directExecutor());
    return tailer;
  }

  /** All shards, listed: what the library's own benchmark does. */
  private FixedShardProvider shards() {
    long count = Long.parseLong(options.get("shards"));
    List<Long> values = LongStream.range(0, count).boxed().collect(Collectors.toList());
    return FixedShardProvider.create(options.get("shard"), Value.int64Array(values));
  }

  private synchronized void received(int table, Row row, Timestamp commitTimestamp) {
    buffer.putLong(table).putLong(row.getLong("Id")).putLong(row.getLong("Version"));
    buffer.putLong(micros(commitTimestamp)).putLong(now());
    rows++;
    if (!buffer.hasRemaining()) {
      flush();
    }
  }

  private synchronized void flush() {
    try {
      delivered.write(buffer.array(), 0, buffer.position());
      delivered.flush();
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
    buffer.clear();
  }

  private synchronized long rows() {
    return rows;
  }

  /**
   * Waits for the drain file, then until a poll that began after it has brought nothing more. Every
   * poll for newer rows is a new statement object, and begins when the one before it has been read.
   */
  private void awaitDrained(SpannerTableTailer tailer) throws Exception {
    Path drain = Path.of(options.get("drain"));
    while (!Files.exists(drain)) {
      look();
    }
    Statement last = tailer.getLastPollStatement();
    long before = -1;
    while (true) {
      look();
      Statement current = tailer.getLastPollStatement();
      if (current != last) {
        long seen = rows();
        if (seen == before) {
          return;
        }
        before = seen;
        last = current;
      }
    }
  }

  private void look() throws Exception {
    if (failure != null) {
      throw new IllegalStateException("the watcher has failed", failure);
    }
    flush();
    Thread.sleep(LOOK_EVERY_MILLIS);
  }

  private void logCpu() throws IOException {
    OperatingSystemMXBean system =
        (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    ByteBuffer record = ByteBuffer.allocate(2 * Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    record.putLong(now()).putLong(system.getProcessCpuTime() / 1_000);
    cpu.write(record.array());
  }

  private static void announce(Path path, String text) throws IOException {
    Path part = path.resolveSibling(path.getFileName() + ".part");
    Files.writeString(part, text);
    Files.move(part, path, StandardCopyOption.ATOMIC_MOVE);
  }

  private static long micros(Timestamp timestamp) {
    return timestamp.getSeconds() * 1_000_000 + timestamp.getNanos() / 1_000;
  }

  private static long now() {
    Instant moment = Instant.now();
    return moment.getEpochSecond() * 1_000_000 + moment.getNano() / 1_000;
  }
}
