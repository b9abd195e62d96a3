import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.cloud.Timestamp;
import com.google.cloud.spanner.DatabaseClient;
import com.google.cloud.spanner.DatabaseId;
import com.google.cloud.spanner.Key;
import com.google.cloud.spanner.KeySet;
import com.google.cloud.spanner.Spanner;
import com.google.cloud.spanner.SpannerOptions;
import com.google.cloud.spanner.Statement;
import com.google.cloud.spring.data.spanner.core.SpannerMutationFactoryImpl;
import com.google.cloud.spring.data.spanner.core.SpannerQueryOptions;
import com.google.cloud.spring.data.spanner.core.SpannerReadOptions;
import com.google.cloud.spring.data.spanner.core.SpannerTemplate;
import com.google.cloud.spring.data.spanner.core.admin.SpannerDatabaseAdminTemplate;
import com.google.cloud.spring.data.spanner.core.admin.SpannerSchemaUtils;
import com.google.cloud.spring.data.spanner.core.convert.ConverterAwareMappingSpannerEntityProcessor;
import com.google.cloud.spring.data.spanner.core.convert.SpannerEntityProcessor;
import com.google.cloud.spring.data.spanner.core.mapping.Column;
import com.google.cloud.spring.data.spanner.core.mapping.Interleaved;
import com.google.cloud.spring.data.spanner.core.mapping.PrimaryKey;
import com.google.cloud.spring.data.spanner.core.mapping.SpannerMappingContext;
import com.google.cloud.spring.data.spanner.core.mapping.Table;
import java.time.LocalDate;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The template of Spring Data on entities as in its samples, whose schema it generates. */
public class SpringDataSuite {
  @Table(name = "singers")
  public static class Singer {
    @PrimaryKey
    @Column(name = "singer_id")
    public String id;

    public String name;
    public LocalDate born;
    public List<Double> scores;
    public boolean active;

    @Column(spannerCommitTimestamp = true)
    public Timestamp written;

    @Interleaved public List<Album> albums;
  }

  @Table(name = "albums")
  public static class Album {
    @PrimaryKey
    @Column(name = "singer_id")
    public String singerId;

    @PrimaryKey(keyOrder = 2)
    public long number;

    public String title;
  }

  private static Spanner spanner;
  private static SpannerTemplate template;

  @BeforeAll
  public static void generate() {
    SpannerOptions options =
        SpannerOptions.newBuilder().setProjectId(System.getProperty("project")).build();
    spanner = options.getService();
    DatabaseId id =
        DatabaseId.of(options.getProjectId(), System.getProperty("instance"), "spring-data");
    SpannerMappingContext context = new SpannerMappingContext();
    SpannerEntityProcessor processor = new ConverterAwareMappingSpannerEntityProcessor(context);
    SpannerSchemaUtils schema = new SpannerSchemaUtils(context, processor, true);
    DatabaseClient[] client = new DatabaseClient[1];
    SpannerDatabaseAdminTemplate admin =
        new SpannerDatabaseAdminTemplate(
            spanner.getDatabaseAdminClient(), () -> client[0], () -> id);
    List<String> ddl = schema.getCreateTableDdlStringsForInterleavedHierarchy(Singer.class);
    admin.executeDdlStrings(ddl, true);
    client[0] = spanner.getDatabaseClient(id);
    assertTrue(admin.tableExists("albums"));
    assertEquals("singers", admin.getChildParentTablesMap().get("albums"));
    template =
        new SpannerTemplate(
            () -> client[0],
            context,
            processor,
            new SpannerMutationFactoryImpl(processor, context, schema),
            schema);
  }

  @AfterAll
  public static void close() {
    spanner.close();
  }

  @BeforeEach
  public void empty() {
    template.delete(Singer.class, KeySet.all());
  }

  private static Singer make(String id, String name) {
    Singer singer = new Singer();
    singer.id = id;
    singer.name = name;
    singer.born = LocalDate.of(1970, 5, 1);
    singer.scores = List.of(0.5, -1.0);
    Album album = new Album();
    album.singerId = id;
    album.number = 1;
    album.title = "Total Junk";
    singer.albums = List.of(album);
    return singer;
  }

  @Test
  public void anEntityComesBackWithItsChildren() {
    template.insert(make("a", "Alice"));
    Singer found = template.read(Singer.class, Key.of("a"));
    assertEquals(LocalDate.of(1970, 5, 1), found.born);
    assertEquals(List.of(0.5, -1.0), found.scores);
    assertEquals("Total Junk", found.albums.get(0).title);
    assertNotNull(found.written);
  }

  @Test
  public void aSecondInsertIsRefused() {
    template.insert(make("a", "Alice"));
    assertThrows(RuntimeException.class, () -> template.insert(make("a", "Bob")));
    template.upsert(make("a", "Bob"));
    assertEquals("Bob", template.read(Singer.class, Key.of("a")).name);
  }

  @Test
  public void queriesAreSortedAndPaged() {
    template.insertAll(List.of(make("a", "Alice"), make("b", "Bob"), make("c", "Carol")));
    assertEquals(3, template.count(Singer.class));
    Statement query =
        Statement.newBuilder("SELECT * FROM singers WHERE name > @name ORDER BY name LIMIT 1")
            .bind("name").to("Alice").build();
    SpannerQueryOptions withoutAlbums = new SpannerQueryOptions().setAllowPartialRead(true);
    List<Singer> found = template.query(Singer.class, query, withoutAlbums);
    assertEquals("Bob", found.get(0).name);
  }

  @Test
  public void aTransactionIsWholeOrNothing() {
    assertThrows(
        RuntimeException.class,
        () ->
            template.performReadWriteTransaction(
                inside -> {
                  inside.insert(make("a", "Alice"));
                  throw new IllegalStateException();
                }));
    assertEquals(0, template.count(Singer.class));
    template.performReadWriteTransaction(
        inside -> {
          inside.insert(make("a", "Alice"));
          return true;
        });
    Singer old =
        template.performReadOnlyTransaction(
            inside -> inside.read(Singer.class, Key.of("a")), new SpannerReadOptions());
    assertEquals("Alice", old.name);
  }

  @Test
  public void dmlCountsAndChildrenGoWithTheirParent() {
    template.insert(make("a", "Alice"));
    Statement update = Statement.of("UPDATE singers SET active = TRUE WHERE NOT active");
    assertEquals(1, template.executeDmlStatement(update));
    template.delete(template.read(Singer.class, Key.of("a")));
    assertEquals(0, template.count(Album.class));
    assertFalse(template.existsById(Singer.class, Key.of("a")));
  }
}
