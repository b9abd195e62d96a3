import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.persistence.Column;
import jakarta.persistence.Entity;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.Id;
import jakarta.persistence.ManyToOne;
import jakarta.persistence.OneToMany;
import jakarta.persistence.OptimisticLockException;
import jakarta.persistence.Version;
import java.math.BigDecimal;
import java.time.Instant;
import java.time.LocalDate;
import java.util.List;
import java.util.UUID;
import org.hibernate.JDBCException;
import org.hibernate.Session;
import org.hibernate.SessionFactory;
import org.hibernate.cfg.Configuration;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** The entities of the dialect's samples: their schema is generated, then they are used. */
public class HibernateSuite {
  private static SessionFactory factory;

  @BeforeAll
  public static void generate() {
    // Twice: the second time there is nothing left to generate.
    List<Class<?>> entities = List.of(Singer.class, Concert.class);
    configure(entities).buildSessionFactory().close();
    factory = configure(entities).buildSessionFactory();
  }

  static Configuration configure(List<Class<?>> entities) {
    Configuration configuration = new Configuration();
    configuration.setProperty("hibernate.connection.url", System.getProperty("url"));
    configuration.setProperty(
        "hibernate.connection.driver_class", "com.google.cloud.spanner.jdbc.JdbcDriver");
    configuration.setProperty("hibernate.dialect", System.getProperty("hibernate"));
    configuration.setProperty("hibernate.hbm2ddl.auto", "update");
    configuration.setProperty("hibernate.hbm2ddl.halt_on_error", "true");
    for (Class<?> each : entities) {
      configuration.addAnnotatedClass(each);
    }
    return configuration;
  }

  @AfterAll
  public static void close() {
    factory.close();
  }

  @Test
  public void everyTypeComesBack() {
    Singer singer = new Singer("Alice");
    singer.born = LocalDate.of(1970, 5, 1);
    singer.seen = Instant.parse("2026-01-02T03:04:05.678901Z");
    singer.paid = new BigDecimal("3.140000000");
    singer.score = -0.5;
    singer.active = true;
    singer.picture = new byte[] {0, -1, 127};
    factory.inTransaction(session -> session.persist(singer));
    try (Session session = factory.openSession()) {
      Singer found = session.get(Singer.class, singer.id);
      assertEquals(singer.born, found.born);
      assertEquals(singer.seen, found.seen);
      assertEquals(0, singer.paid.compareTo(found.paid));
      assertEquals(singer.score, found.score);
      assertArrayEquals(singer.picture, found.picture);
    }
  }

  @Test
  public void queriesJoinGroupAndPage() {
    Singer singer = new Singer("Bob");
    factory.inTransaction(
        session -> {
          session.persist(singer);
          for (long id = 10; id < 15; id++) {
            session.persist(new Concert(id, singer, "Concert " + id));
          }
        });
    try (Session session = factory.openSession()) {
      String titles =
          "select c.title from Concert c join c.singer s where s.name like 'B%' order by c.id desc";
      assertEquals(
          List.of("Concert 13", "Concert 12"),
          session.createQuery(titles, String.class)
              .setFirstResult(1).setMaxResults(2).getResultList());
      String count = "select count(c) from Concert c where c.singer.name = :name";
      assertEquals(
          5L,
          session.createQuery(count, Long.class).setParameter("name", "Bob").getSingleResult());
      assertEquals(5, session.get(Singer.class, singer.id).concerts.size());
    }
  }

  @Test
  public void rowsAreUpdatedAndDeletedByQueries() {
    factory.inTransaction(
        session -> {
          session.persist(new Singer("Carol"));
          session.persist(new Singer("Carol"));
        });
    factory.inTransaction(
        session ->
            assertEquals(
                2,
                session.createMutationQuery("update Singer set name = 'Dave' where name = 'Carol'")
                    .executeUpdate()));
    factory.inTransaction(
        session ->
            assertEquals(
                2,
                session.createMutationQuery("delete from Singer where name = 'Dave'")
                    .executeUpdate()));
  }

  @Test
  public void anOldVersionIsRefused() {
    Singer singer = new Singer("Eve");
    factory.inTransaction(session -> session.persist(singer));
    try (Session slow = factory.openSession()) {
      slow.beginTransaction();
      Singer old = slow.get(Singer.class, singer.id);
      slow.getTransaction().commit();
      factory.inTransaction(
          session -> session.get(Singer.class, singer.id).name = "Eva");
      slow.beginTransaction();
      old.name = "Evi";
      assertThrows(OptimisticLockException.class, slow::flush);
    }
  }

  @Test
  public void aUniqueColumnHolds() {
    factory.inTransaction(session -> session.persist(new Concert(20, null, "Once")));
    JDBCException error =
        assertThrows(
            JDBCException.class,
            () -> factory.inTransaction(session -> session.persist(new Concert(21, null, "Once"))));
    assertTrue(error.getMessage().contains("ALREADY_EXISTS"), error.getMessage());
  }
}

@Entity(name = "Singer")
class Singer {
  @Id @GeneratedValue UUID id;

  @Version int version;

  @Column(nullable = false)
  String name;

  LocalDate born;
  Instant seen;
  BigDecimal paid;
  Double score;
  boolean active;
  byte[] picture;

  @OneToMany(mappedBy = "singer")
  List<Concert> concerts;

  Singer() {}

  Singer(String name) {
    this.name = name;
  }
}

@Entity(name = "Concert")
class Concert {
  @Id long id;

  @ManyToOne Singer singer;

  @Column(unique = true)
  String title;

  Concert() {}

  Concert(long id, Singer singer, String title) {
    this.id = id;
    this.singer = singer;
    this.title = title;
  }
}
