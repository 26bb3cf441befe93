"""What every controller uses: informers, work queues, clients, events, leader election and the controller manager."""
