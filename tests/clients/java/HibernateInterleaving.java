import static org.junit.jupiter.api.Assertions.assertNull;

import com.google.cloud.spanner.hibernate.Interleaved;
import jakarta.persistence.Entity;
import jakarta.persistence.Id;
import jakarta.persistence.IdClass;
import java.io.Serializable;
import java.util.List;
import java.util.Objects;
import org.hibernate.Session;
import org.hibernate.SessionFactory;
import org.junit.jupiter.api.Test;

/** An interleaved table, which the annotation of Google's dialect makes. */
public class HibernateInterleaving {
  @Test
  public void anInterleavedRowGoesWithItsParent() {
    List<Class<?>> entities = List.of(Album.class, Track.class);
    try (SessionFactory factory = HibernateSuite.configure(entities).buildSessionFactory()) {
      deleteParent(factory);
    }
  }

  private static void deleteParent(SessionFactory factory) {
    Album album = new Album();
    album.albumId = 1;
    Track track = new Track();
    track.albumId = 1;
    track.trackNumber = 1;
    factory.inTransaction(
        session -> {
          session.persist(album);
          session.flush();
          session.persist(track);
        });
    factory.inTransaction(session -> session.remove(session.get(Album.class, 1L)));
    try (Session session = factory.openSession()) {
      TrackId id = new TrackId();
      id.albumId = 1;
      id.trackNumber = 1;
      assertNull(session.get(Track.class, id));
    }
  }
}

@Entity(name = "Album")
class Album {
  @Id long albumId;
  String title;

  Album() {}
}

class TrackId implements Serializable {
  long albumId;
  long trackNumber;

  @Override
  public boolean equals(Object other) {
    return other instanceof TrackId id
        && id.albumId == albumId
        && id.trackNumber == trackNumber;
  }

  @Override
  public int hashCode() {
    return Objects.hash(albumId, trackNumber);
  }
}

@Entity(name = "Track")
@IdClass(TrackId.class)
@Interleaved(parentEntity = Album.class, cascadeDelete = true)
class Track {
  @Id long albumId;
  @Id long trackNumber;
  String title;

  Track() {}
}
