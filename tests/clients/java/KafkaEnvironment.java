package io.debezium.connector.spanner.util;

import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;

/** In the place of the connector's class of this name, which starts a container: a broker runs. */
public class KafkaEnvironment {
  public static final String DOCKER_COMPOSE_FILE = "";

  private static final Set<String> KEPT =
      Set.of("__consumer_offsets", "_rebalancing_topic_spanner_connector_testing-connector");

  private static boolean started;

  public KafkaEnvironment(String dockerComposeFilePath) {}

  public void start() {}

  public KafkaBrokerApi<?, ?> kafkaBrokerApiOn() {
    return new KafkaBrokerApi<>();
  }

  public boolean isStarted() {
    return started;
  }

  public void setStarted() {
    started = true;
  }

  /** What one class of tests leaves is not read by the next one. */
  public void clearTopics() {
    Map<String, Object> settings = Map.of("bootstrap.servers", kafkaBrokerApiOn().getAddress());
    try (Admin admin = Admin.create(settings)) {
      Set<String> topics = admin.listTopics().names().get();
      topics.removeAll(KEPT);
      admin.deleteTopics(topics).all().get();
    } catch (Exception error) {
      throw new IllegalStateException(error);
    }
  }
}
