import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import jakarta.persistence.Entity;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.GenerationType;
import jakarta.persistence.Id;
import java.time.LocalDate;
import java.util.List;
import java.util.Set;
import org.hibernate.Session;
import org.hibernate.SessionFactory;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** What the dialects of Hibernate itself know, and Google's does not. */
public class HibernateOwnDialects {
  private static SessionFactory factory;

  @BeforeAll
  public static void generate() {
    factory =
        HibernateSuite.configure(List.of(Singer.class, Concert.class, Ticket.class, Venue.class))
            .buildSessionFactory();
  }

  @AfterAll
  public static void close() {
    factory.close();
  }

  @Test
  public void anArrayComesBackAndIsMeasured() {
    Venue venue = new Venue();
    venue.tags = new String[] {"a", "b"};
    factory.inTransaction(session -> session.persist(venue));
    try (Session session = factory.openSession()) {
      assertArrayEquals(venue.tags, session.get(Venue.class, venue.id).tags);
      String query = "select count(v) from Venue v where array_length(v.tags) = 2";
      assertEquals(1L, session.createQuery(query, Long.class).getSingleResult());
    }
  }

  @Test
  public void idsAreGenerated() {
    List<Ticket> tickets = List.of(new Ticket(), new Ticket(), new Ticket());
    factory.inTransaction(session -> tickets.forEach(session::persist));
    assertEquals(3, tickets.stream().map(each -> each.id).distinct().count());
  }

  @Test
  public void functionsAreComputed() {
    factory.inTransaction(
        session -> {
          Singer singer = new Singer("Faythe");
          singer.born = LocalDate.of(1970, 5, 1);
          singer.score = 2.5;
          session.persist(singer);
        });
    try (Session session = factory.openSession()) {
      for (String condition :
          List.of(
              "year(born) = 1970 and month(born) = 5 and day(born) = 1",
              "upper(name) = 'FAYTHE' and length(name) = 6 and locate('y', name) = 3",
              "substring(name, 2, 3) = 'ayt' and trim(' ' || name || ' ') = 'Faythe'",
              "concat(name, '-', str(year(born))) = 'Faythe-1970'",
              "floor(score) = 2 and ceiling(score) = 3 and abs(-score) = 2.5",
              "mod(7, 4) = 3 and sqrt(score * score) = 2.5 and power(score, 2) = 6.25",
              "coalesce(paid, 1) = 1 and nullif(name, 'x') = name",
              "case when score > 2 then 'high' else 'low' end = 'high'",
              "cast(score as string) = '2.5' and cast(name as string) like 'F%'",
              "born + 1 day = date 1970-05-02 and born < current_date",
              "seen is null and born between date 1970-01-01 and date 1970-12-31",
              "name in (select s.name from Singer s where s.name like 'F%')",
              "exists (select 1 from Singer s where s.id = x.id)")) {
        String query = "select count(x) from Singer x where x.name = 'Faythe' and (" + condition + ")";
        assertEquals(
            1L, session.createQuery(query, Long.class).getSingleResult(), () -> condition);
      }
    }
  }

  @Test
  public void resultsAreUnitedAndNamed() {
    factory.inTransaction(
        session -> {
          for (long id = 30; id < 34; id++) {
            session.persist(new Concert(id, null, "Ranked " + id % 2 + " " + id));
          }
        });
    try (Session session = factory.openSession()) {
      String unions =
          "select c.id from Concert c where c.id = 30 union all"
              + " select c.id from Concert c where c.id = 33";
      List<Long> united = session.createQuery(unions, Long.class).getResultList();
      assertEquals(Set.of(30L, 33L), Set.copyOf(united));
      String named =
          "with r as (select substring(c.title, 8, 1) as kind, max(c.id) as newest from Concert c"
              + " where c.title like 'Ranked%' group by substring(c.title, 8, 1))"
              + " select x.newest from r x order by x.kind";
      assertEquals(List.of(32L, 33L), session.createQuery(named, Long.class).getResultList());
    }
  }
}

@Entity(name = "Ticket")
class Ticket {
  @Id
  @GeneratedValue(strategy = GenerationType.SEQUENCE)
  long id;
}

@Entity(name = "Venue")
class Venue {
  @Id
  @GeneratedValue(strategy = GenerationType.IDENTITY)
  long id;

  String[] tags;
}
