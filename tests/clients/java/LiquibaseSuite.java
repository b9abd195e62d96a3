import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import liquibase.Contexts;
import liquibase.LabelExpression;
import liquibase.Liquibase;
import liquibase.Scope;
import liquibase.changelog.FastCheckService;
import liquibase.database.Database;
import liquibase.database.DatabaseFactory;
import liquibase.database.jvm.JdbcConnection;
import liquibase.exception.LiquibaseException;
import liquibase.resource.DirectoryResourceAccessor;
import liquibase.snapshot.DatabaseSnapshot;
import liquibase.snapshot.SnapshotControl;
import liquibase.snapshot.SnapshotGeneratorFactory;
import liquibase.structure.core.ForeignKey;
import liquibase.structure.core.Index;
import liquibase.structure.core.Table;
import liquibase.structure.core.View;
import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;
import org.junit.jupiter.api.io.TempDir;

/** One changelog: applied, applied again, read back, rolled back; the steps in their order. */
@TestMethodOrder(MethodOrderer.OrderAnnotation.class)
public class LiquibaseSuite {
  private static final String HEAD =
      "<databaseChangeLog xmlns='http://www.liquibase.org/xml/ns/dbchangelog'"
          + " xmlns:xsi='http://www.w3.org/2001/XMLSchema-instance'"
          + " xsi:schemaLocation='http://www.liquibase.org/xml/ns/dbchangelog"
          + " http://www.liquibase.org/xml/ns/dbchangelog/dbchangelog-latest.xsd'>";
  private static final String CHANGES =
      "<changeSet id='tables' author='a'>"
          + "<createTable tableName='Singers'>"
          + "<column name='SingerId' type='BIGINT'>"
          + "<constraints primaryKey='true' primaryKeyName='PK_Singers'/></column>"
          + "<column name='FirstName' type='VARCHAR(100)'/>"
          + "<column name='LastName' type='VARCHAR(100)'><constraints nullable='false'/></column>"
          + "<column name='Born' type='DATE'/><column name='Seen' type='TIMESTAMP'/>"
          + "<column name='Paid' type='NUMERIC'/><column name='Active' type='BOOLEAN'"
          + " defaultValueComputed='(TRUE)'/>"
          + "</createTable>"
          + "<createTable tableName='Albums'>"
          + "<column name='AlbumId' type='BIGINT'><constraints primaryKey='true'/></column>"
          + "<column name='SingerId' type='BIGINT'/><column name='Title' type='VARCHAR(200)'/>"
          + "</createTable></changeSet>"
          + "<changeSet id='keys' author='a'>"
          + "<addForeignKeyConstraint baseTableName='Albums' baseColumnNames='SingerId'"
          + " constraintName='FK_Albums_Singers' referencedTableName='Singers'"
          + " referencedColumnNames='SingerId'/>"
          + "<createIndex tableName='Singers' indexName='Idx_Singers_Name' unique='true'>"
          + "<column name='LastName'/><column name='FirstName' descending='true'/></createIndex>"
          + "</changeSet>"
          + "<changeSet id='rows' author='a'>"
          + "<insert tableName='Singers'><column name='SingerId' valueNumeric='1'/>"
          + "<column name='LastName' value='Richards'/>"
          + "<column name='Born' valueDate='1970-05-01'/></insert>"
          + "<insert tableName='Albums'><column name='AlbumId' valueNumeric='1'/>"
          + "<column name='SingerId' valueNumeric='1'/></insert>"
          + "<rollback><delete tableName='Albums'/><delete tableName='Singers'/></rollback>"
          + "</changeSet>"
          + "<changeSet id='view' author='a'><createView viewName='Names'>"
          + "SELECT Singers.LastName AS LastName FROM Singers</createView></changeSet>"
          + "<changeSet id='tag' author='a'><tagDatabase tag='first'/></changeSet>"
          + "<changeSet id='column' author='a'>"
          + "<addColumn tableName='Albums'><column name='Genre' type='VARCHAR(20)'/></addColumn>"
          + "<modifyDataType tableName='Albums' columnName='Title' newDataType='VARCHAR(300)'/>"
          + "<rollback><dropColumn tableName='Albums' columnName='Genre'/></rollback>"
          + "</changeSet>";

  @TempDir static Path folder;

  @Test
  @Order(1)
  public void theChangesAreApplied() throws Exception {
    update(CHANGES);
    assertEquals(List.of("Albums", "Singers"), names(Table.class));
    assertEquals(List.of("Richards"), column("SELECT LastName FROM Names"));
    assertEquals(
        List.of("column", "keys", "rows", "tables", "tag", "view"),
        column("SELECT ID FROM DATABASECHANGELOG ORDER BY ID"));
  }

  @Test
  @Order(2)
  public void nothingIsAppliedTwice() throws Exception {
    update(CHANGES);
    assertEquals(List.of("6"), column("SELECT COUNT(*) FROM DATABASECHANGELOG"));
    assertEquals(List.of("false"), column("SELECT LOCKED FROM DATABASECHANGELOGLOCK"));
  }

  @Test
  @Order(3)
  public void aSnapshotHasWhatWasMade() throws Exception {
    assertTrue(names(Index.class).contains("Idx_Singers_Name"));
    assertTrue(names(ForeignKey.class).contains("FK_Albums_Singers"));
    assertEquals(List.of("Names"), names(View.class));
  }

  @Test
  @Order(4)
  public void aChangedChangeSetIsRefused() {
    String changed = CHANGES.replace("VARCHAR(300)", "VARCHAR(400)");
    assertThrows(LiquibaseException.class, () -> update(changed));
  }

  @Test
  @Order(5)
  public void aForeignKeyHolds() {
    String orphan =
        "<changeSet id='orphan' author='a'><insert tableName='Albums'>"
            + "<column name='AlbumId' valueNumeric='2'/>"
            + "<column name='SingerId' valueNumeric='9'/></insert></changeSet>";
    Exception error = assertThrows(LiquibaseException.class, () -> update(CHANGES + orphan));
    assertTrue(error.getMessage().contains("FK_Albums_Singers"), error.getMessage());
  }

  @Test
  @Order(6)
  public void theChangesAreRolledBack() throws Exception {
    try (Connection connection = connect()) {
      open(connection, CHANGES).rollback("first", new Contexts(), new LabelExpression());
    }
    assertEquals(
        List.of(),
        column(
            "SELECT COLUMN_NAME FROM INFORMATION_SCHEMA.COLUMNS"
                + " WHERE TABLE_NAME = 'Albums' AND COLUMN_NAME = 'Genre'"));
    try (Connection connection = connect()) {
      open(connection, CHANGES).rollback(5, new Contexts(), new LabelExpression());
    }
    assertEquals(List.of(), names(Table.class));
  }

  private static Connection connect() throws SQLException {
    return DriverManager.getConnection(System.getProperty("url"));
  }

  private static Liquibase open(Connection connection, String changes) throws Exception {
    Files.writeString(folder.resolve("changes.xml"), HEAD + changes + "</databaseChangeLog>");
    // What remembers, by its name, that a file has nothing new.
    Scope.getCurrentScope().getSingleton(FastCheckService.class).clearCache();
    Database database =
        DatabaseFactory.getInstance()
            .findCorrectDatabaseImplementation(new JdbcConnection(connection));
    return new Liquibase("changes.xml", new DirectoryResourceAccessor(folder), database);
  }

  private static void update(String changes) throws Exception {
    try (Connection connection = connect()) {
      open(connection, changes).update(new Contexts());
    }
  }

  private static List<String> column(String sql) throws SQLException {
    List<String> values = new ArrayList<>();
    try (Connection connection = connect();
        ResultSet rows = connection.createStatement().executeQuery(sql)) {
      while (rows.next()) {
        values.add(rows.getString(1));
      }
    }
    return values;
  }

  private static <T extends liquibase.structure.DatabaseObject> List<String> names(Class<T> kind)
      throws Exception {
    try (Connection connection = connect()) {
      Database database = open(connection, "").getDatabase();
      DatabaseSnapshot snapshot =
          SnapshotGeneratorFactory.getInstance()
              .createSnapshot(
                  database.getDefaultSchema(), database, new SnapshotControl(database));
      return snapshot.get(kind).stream()
          .map(liquibase.structure.DatabaseObject::getName)
          .filter(name -> !name.startsWith("DATABASECHANGELOG"))
          .sorted()
          .toList();
    }
  }
}
