"""Debezium's published connector for Spanner, with the Kafka broker and Kafka Connect it needs."""
