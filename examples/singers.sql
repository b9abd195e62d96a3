-- An ordinary table that knows nothing of watching.
CREATE TABLE Singers (
  SingerId INT64 NOT NULL,
  FirstName STRING(200),
  LastName STRING(200),
  BirthDate DATE,
  Picture BYTES(MAX),
) PRIMARY KEY (SingerId);
