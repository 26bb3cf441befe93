"""Common parts of controllers: informers, work queues, clients, events, leader election, the controller manager."""
