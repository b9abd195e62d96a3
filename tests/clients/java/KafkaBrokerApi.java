package io.debezium.connector.spanner.util;

/** In the place of the connector's class of this name: the address of the broker that runs. */
public class KafkaBrokerApi<K, V> {
  public String getAddress() {
    return System.getProperty("broker");
  }
}
