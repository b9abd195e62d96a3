"""Files of a replica: on this machine, in object stores."""
