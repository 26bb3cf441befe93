from twisted.application.service import ServiceMaker

fortunes = ServiceMaker("fortunes", "fortunes.server", "An extension API server with fortunes.", "fortunes")
