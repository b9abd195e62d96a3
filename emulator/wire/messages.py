"""The raw protobuf classes of Spanner's API, as the client's package carries them.

proto-plus wraps each of them; on the server's paths the wrapping costs more than the work. The
generated classes have no annotations, so a message is ``Message``.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import google.cloud.spanner_admin_database_v1.types as database
import google.cloud.spanner_admin_instance_v1.types as instance
import google.cloud.spanner_v1.types as spanner
from google.cloud.spanner_v1.types import change_stream

Message: TypeAlias = Any
"""A protobuf message whose class is known at run time only."""

BatchCreateSessionsRequest: Message = spanner.BatchCreateSessionsRequest.pb()
BatchCreateSessionsResponse: Message = spanner.BatchCreateSessionsResponse.pb()
BatchWriteRequest: Message = spanner.BatchWriteRequest.pb()
BatchWriteResponse: Message = spanner.BatchWriteResponse.pb()
BeginTransactionRequest: Message = spanner.BeginTransactionRequest.pb()
ChangeStreamRecord: Message = change_stream.ChangeStreamRecord.pb()
CommitRequest: Message = spanner.CommitRequest.pb()
CommitResponse: Message = spanner.CommitResponse.pb()
CreateSessionRequest: Message = spanner.CreateSessionRequest.pb()
DeleteSessionRequest: Message = spanner.DeleteSessionRequest.pb()
ExecuteBatchDmlRequest: Message = spanner.ExecuteBatchDmlRequest.pb()
ExecuteBatchDmlResponse: Message = spanner.ExecuteBatchDmlResponse.pb()
ExecuteSqlRequest: Message = spanner.ExecuteSqlRequest.pb()
GetSessionRequest: Message = spanner.GetSessionRequest.pb()
ListSessionsRequest: Message = spanner.ListSessionsRequest.pb()
ListSessionsResponse: Message = spanner.ListSessionsResponse.pb()
PartialResultSet: Message = spanner.PartialResultSet.pb()
PartitionQueryRequest: Message = spanner.PartitionQueryRequest.pb()
PartitionReadRequest: Message = spanner.PartitionReadRequest.pb()
PartitionResponse: Message = spanner.PartitionResponse.pb()
ReadRequest: Message = spanner.ReadRequest.pb()
ResultSet: Message = spanner.ResultSet.pb()
ResultSetMetadata: Message = spanner.ResultSetMetadata.pb()
ResultSetStats: Message = spanner.ResultSetStats.pb()
RollbackRequest: Message = spanner.RollbackRequest.pb()
Session: Message = spanner.Session.pb()
Transaction: Message = spanner.Transaction.pb()
TransactionOptions: Message = spanner.TransactionOptions.pb()

CreateDatabaseMetadata: Message = database.CreateDatabaseMetadata.pb()
CreateDatabaseRequest: Message = database.CreateDatabaseRequest.pb()
DatabaseProto: Message = database.Database.pb()
DropDatabaseRequest: Message = database.DropDatabaseRequest.pb()
GetDatabaseDdlRequest: Message = database.GetDatabaseDdlRequest.pb()
GetDatabaseDdlResponse: Message = database.GetDatabaseDdlResponse.pb()
GetDatabaseRequest: Message = database.GetDatabaseRequest.pb()
ListDatabaseOperationsRequest: Message = database.ListDatabaseOperationsRequest.pb()
ListDatabaseOperationsResponse: Message = database.ListDatabaseOperationsResponse.pb()
ListDatabasesRequest: Message = database.ListDatabasesRequest.pb()
ListDatabasesResponse: Message = database.ListDatabasesResponse.pb()
UpdateDatabaseDdlMetadata: Message = database.UpdateDatabaseDdlMetadata.pb()
UpdateDatabaseDdlRequest: Message = database.UpdateDatabaseDdlRequest.pb()
UpdateDatabaseMetadata: Message = database.UpdateDatabaseMetadata.pb()
UpdateDatabaseRequest: Message = database.UpdateDatabaseRequest.pb()

BackupProto: Message = database.Backup.pb()
BackupScheduleProto: Message = database.BackupSchedule.pb()
CopyBackupMetadata: Message = database.CopyBackupMetadata.pb()
CopyBackupRequest: Message = database.CopyBackupRequest.pb()
CreateBackupMetadata: Message = database.CreateBackupMetadata.pb()
CreateBackupRequest: Message = database.CreateBackupRequest.pb()
CreateBackupScheduleRequest: Message = database.CreateBackupScheduleRequest.pb()
DeleteBackupRequest: Message = database.DeleteBackupRequest.pb()
DeleteBackupScheduleRequest: Message = database.DeleteBackupScheduleRequest.pb()
GetBackupRequest: Message = database.GetBackupRequest.pb()
GetBackupScheduleRequest: Message = database.GetBackupScheduleRequest.pb()
OptimizeRestoredDatabaseMetadata: Message = database.OptimizeRestoredDatabaseMetadata.pb()
RestoreDatabaseMetadata: Message = database.RestoreDatabaseMetadata.pb()
RestoreDatabaseRequest: Message = database.RestoreDatabaseRequest.pb()
RestoreInfo: Message = database.RestoreInfo.pb()
UpdateBackupRequest: Message = database.UpdateBackupRequest.pb()
UpdateBackupScheduleRequest: Message = database.UpdateBackupScheduleRequest.pb()
ListBackupOperationsRequest: Message = database.ListBackupOperationsRequest.pb()
ListBackupOperationsResponse: Message = database.ListBackupOperationsResponse.pb()
ListBackupSchedulesRequest: Message = database.ListBackupSchedulesRequest.pb()
ListBackupSchedulesResponse: Message = database.ListBackupSchedulesResponse.pb()
ListBackupsRequest: Message = database.ListBackupsRequest.pb()
ListBackupsResponse: Message = database.ListBackupsResponse.pb()
ListDatabaseRolesRequest: Message = database.ListDatabaseRolesRequest.pb()
ListDatabaseRolesResponse: Message = database.ListDatabaseRolesResponse.pb()

CreateInstanceMetadata: Message = instance.CreateInstanceMetadata.pb()
CreateInstanceRequest: Message = instance.CreateInstanceRequest.pb()
CreateInstancePartitionMetadata: Message = instance.CreateInstancePartitionMetadata.pb()
CreateInstancePartitionRequest: Message = instance.CreateInstancePartitionRequest.pb()
DeleteInstancePartitionRequest: Message = instance.DeleteInstancePartitionRequest.pb()
DeleteInstanceRequest: Message = instance.DeleteInstanceRequest.pb()
GetInstanceConfigRequest: Message = instance.GetInstanceConfigRequest.pb()
GetInstancePartitionRequest: Message = instance.GetInstancePartitionRequest.pb()
GetInstanceRequest: Message = instance.GetInstanceRequest.pb()
InstanceConfigProto: Message = instance.InstanceConfig.pb()
InstancePartitionProto: Message = instance.InstancePartition.pb()
InstanceProto: Message = instance.Instance.pb()
ListInstanceConfigsRequest: Message = instance.ListInstanceConfigsRequest.pb()
ListInstanceConfigsResponse: Message = instance.ListInstanceConfigsResponse.pb()
ListInstanceConfigOperationsRequest: Message = instance.ListInstanceConfigOperationsRequest.pb()
ListInstanceConfigOperationsResponse: Message = instance.ListInstanceConfigOperationsResponse.pb()
ListInstancePartitionOperationsRequest: Message = (
    instance.ListInstancePartitionOperationsRequest.pb()
)
ListInstancePartitionOperationsResponse: Message = (
    instance.ListInstancePartitionOperationsResponse.pb()
)
ListInstancePartitionsRequest: Message = instance.ListInstancePartitionsRequest.pb()
ListInstancePartitionsResponse: Message = instance.ListInstancePartitionsResponse.pb()
ListInstancesRequest: Message = instance.ListInstancesRequest.pb()
ListInstancesResponse: Message = instance.ListInstancesResponse.pb()
UpdateInstancePartitionMetadata: Message = instance.UpdateInstancePartitionMetadata.pb()
UpdateInstancePartitionRequest: Message = instance.UpdateInstancePartitionRequest.pb()
UpdateInstanceMetadata: Message = instance.UpdateInstanceMetadata.pb()
UpdateInstanceRequest: Message = instance.UpdateInstanceRequest.pb()
