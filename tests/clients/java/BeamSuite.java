import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.google.cloud.Timestamp;
import com.google.cloud.spanner.DatabaseClient;
import com.google.cloud.spanner.DatabaseId;
import com.google.cloud.spanner.Key;
import com.google.cloud.spanner.KeySet;
import com.google.cloud.spanner.Mutation;
import com.google.cloud.spanner.Options;
import com.google.cloud.spanner.ResultSet;
import com.google.cloud.spanner.Spanner;
import com.google.cloud.spanner.SpannerOptions;
import com.google.cloud.spanner.Statement;
import com.google.cloud.spanner.Struct;
import java.util.ArrayList;
import java.util.List;
import org.apache.beam.runners.direct.DirectOptions;
import org.apache.beam.sdk.Pipeline;
import org.apache.beam.sdk.coders.StringUtf8Coder;
import org.apache.beam.sdk.io.gcp.spanner.MutationGroup;
import org.apache.beam.sdk.io.gcp.spanner.SpannerConfig;
import org.apache.beam.sdk.io.gcp.spanner.SpannerIO;
import org.apache.beam.sdk.io.gcp.spanner.changestreams.model.DataChangeRecord;
import org.apache.beam.sdk.io.gcp.spanner.changestreams.model.Mod;
import org.apache.beam.sdk.options.PipelineOptionsFactory;
import org.apache.beam.sdk.options.ValueProvider.StaticValueProvider;
import org.apache.beam.sdk.testing.PAssert;
import org.apache.beam.sdk.transforms.Count;
import org.apache.beam.sdk.transforms.Create;
import org.apache.beam.sdk.transforms.FlatMapElements;
import org.apache.beam.sdk.values.PCollection;
import org.apache.beam.sdk.values.TypeDescriptors;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Pipelines of SpannerIO: writes, reads in partitions, and follows a change stream. */
public class BeamSuite {
  private static final String PROJECT = System.getProperty("project");
  private static final String INSTANCE = System.getProperty("instance");
  private static final String DATABASE = "pipelines";
  private static final String HOST = System.getenv("SPANNER_EMULATOR_HOST");
  private static final int ROWS = 300;
  private static Spanner spanner;

  @BeforeAll
  public static void create() throws Exception {
    spanner = SpannerOptions.newBuilder().setProjectId(PROJECT).build().getService();
    List<String> statements =
        List.of(
            "CREATE TABLE Singers (Id INT64, Name STRING(MAX)) PRIMARY KEY (Id)",
            "CREATE CHANGE STREAM Followed FOR Singers"
                + " OPTIONS (value_capture_type = 'NEW_ROW_AND_OLD_VALUES')");
    spanner.getDatabaseAdminClient().createDatabase(INSTANCE, DATABASE, statements).get();
  }

  @AfterAll
  public static void close() {
    spanner.close();
  }

  private static String readName(long id) {
    return client().singleUse().readRow("Singers", Key.of(id), List.of("Name")).getString(0);
  }

  private static DatabaseClient client() {
    return spanner.getDatabaseClient(DatabaseId.of(PROJECT, INSTANCE, DATABASE));
  }

  @BeforeEach
  public void empty() {
    client().write(List.of(Mutation.delete("Singers", KeySet.all())));
  }

  private static SpannerConfig config() {
    return SpannerConfig.create()
        .withProjectId(PROJECT)
        .withInstanceId(INSTANCE)
        .withDatabaseId(DATABASE)
        .withEmulatorHost(StaticValueProvider.of(HOST))
        .withIsLocalChannelProvider(StaticValueProvider.of(false));
  }

  private static Pipeline begin() {
    DirectOptions options = PipelineOptionsFactory.create().as(DirectOptions.class);
    options.setTargetParallelism(2);
    return Pipeline.create(options);
  }

  private static Mutation singer(long id, String name) {
    return Mutation.newInsertOrUpdateBuilder("Singers")
        .set("Id")
        .to(id)
        .set("Name")
        .to(name)
        .build();
  }

  private static void write() {
    List<Mutation> rows = new ArrayList<>();
    for (long id = 0; id < ROWS; id++) {
      rows.add(singer(id, "name " + id));
    }
    Pipeline pipeline = begin();
    pipeline.apply(Create.of(rows)).apply(SpannerIO.write().withSpannerConfig(config()));
    pipeline.run().waitUntilFinish();
  }

  @Test
  public void writesEveryRow() {
    write();
    assertEquals("name 7", readName(7));
    Statement count = Statement.of("SELECT COUNT(*) FROM Singers");
    try (ResultSet rows = client().singleUse().executeQuery(count)) {
      rows.next();
      assertEquals(ROWS, rows.getLong(0));
    }
  }

  @Test
  public void writesGroupsTogether() {
    Pipeline pipeline = begin();
    pipeline
        .apply(Create.of(List.of(MutationGroup.create(singer(1, "a"), singer(2, "b")))))
        .apply(SpannerIO.write().withSpannerConfig(config()).grouped());
    pipeline.run().waitUntilFinish();
    assertEquals("b", readName(2));
  }

  @Test
  public void readsTablesAndQueriesInPartitions() {
    write();
    Pipeline pipeline = begin();
    PCollection<Struct> table =
        pipeline.apply(
            "table",
            SpannerIO.read()
                .withSpannerConfig(config())
                .withTable("Singers")
                .withColumns("Id", "Name"));
    PCollection<Struct> query =
        pipeline.apply(
            "query",
            SpannerIO.read()
                .withSpannerConfig(config())
                .withQuery("SELECT Id FROM Singers WHERE Id < 10"));
    PAssert.thatSingleton(table.apply("rows", Count.globally())).isEqualTo((long) ROWS);
    PAssert.thatSingleton(query.apply("found", Count.globally())).isEqualTo(10L);
    pipeline.run().waitUntilFinish();
  }

  @Test
  public void aTableThatIsNotThereFails() {
    Pipeline pipeline = begin();
    pipeline.apply(
        SpannerIO.read().withSpannerConfig(config()).withTable("Missing").withColumns("Id"));
    assertThrows(Pipeline.PipelineExecutionException.class, () -> pipeline.run().waitUntilFinish());
  }

  @Test
  public void followsAChangeStream() {
    Timestamp start = client().write(List.of(singer(1, "a"), singer(2, "b")));
    client().write(List.of(singer(1, "c")));
    Timestamp end = client().write(List.of(Mutation.delete("Singers", Key.of(2))));
    Pipeline pipeline = begin();
    PCollection<String> changes =
        pipeline
            .apply(
                SpannerIO.readChangeStream()
                    .withSpannerConfig(config())
                    .withChangeStreamName("Followed")
                    .withMetadataInstance(INSTANCE)
                    .withMetadataDatabase(DATABASE)
                    .withInclusiveStartAt(start)
                    .withInclusiveEndAt(end)
                    .withRpcPriority(Options.RpcPriority.HIGH))
            .apply(
                FlatMapElements.into(TypeDescriptors.strings())
                    .via((DataChangeRecord record) -> describe(record)))
            .setCoder(StringUtf8Coder.of());
    PAssert.that(changes)
        .containsInAnyOrder(
            "INSERT {\"Id\":\"1\"} {} {\"Name\":\"a\"}",
            "INSERT {\"Id\":\"2\"} {} {\"Name\":\"b\"}",
            "UPDATE {\"Id\":\"1\"} {\"Name\":\"a\"} {\"Name\":\"c\"}",
            "DELETE {\"Id\":\"2\"} {\"Name\":\"b\"} {}");
    pipeline.run().waitUntilFinish();
  }

  private static List<String> describe(DataChangeRecord record) {
    List<String> changes = new ArrayList<>();
    for (Mod mod : record.getMods()) {
      changes.add(
          String.join(
              " ",
              record.getModType().toString(),
              mod.getKeysJson(),
              mod.getOldValuesJson() == null ? "{}" : mod.getOldValuesJson(),
              mod.getNewValuesJson() == null ? "{}" : mod.getNewValuesJson()));
    }
    return changes;
  }
}
