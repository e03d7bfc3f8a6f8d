"""What is told of alarms: an address gets JSON, an inbox a mail, a program its standard input. Nothing here raises."""
