"""A web application of the kind the front end is made for, in one file: login, sessions, CSRF, uploads to the media
directory. Its settings module is written by the tests, with the items that the front end renders.

    python application.py USER PASSWORD [GUNICORN-OPTION...]   # makes the database and the user, and serves
"""

import os
import sys

import django
from django.conf import settings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "application_settings")
django.setup()

from django.contrib.auth.decorators import login_required
from django.contrib.auth.views import LoginView
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse
from django.middleware.csrf import get_token
from django.shortcuts import redirect
from django.template import engines
from django.urls import path

PAGE = """<!DOCTYPE html><title>{{ title }}</title>{{ messages }}
<form method="post" action="{{ action }}" enctype="multipart/form-data">
<input type="hidden" name="csrfmiddlewaretoken" value="{{ token }}">{{ fields }}<button id="send">Send</button></form>
{% for name in images %}<img src="{{ media }}avatars/{{ name }}" alt="{{ name }}">{% endfor %}"""


def render(request, **values):
    return HttpResponse(engines["django"].from_string(PAGE).render({**values, "token": get_token(request)}))


class Login(LoginView):
    def render_to_response(self, context, **_):
        return render(self.request, title="Log in", action="", fields=context["form"].as_p())


@login_required
def library(request):
    folder = os.path.join(settings.MEDIA_ROOT, "avatars")
    if request.method == "POST":
        upload = request.FILES["file"]
        os.makedirs(folder, mode=0o755, exist_ok=True)
        target = os.path.join(folder, os.path.basename(upload.name))
        with open(target, "wb") as file:
            for chunk in upload.chunks():
                file.write(chunk)
        os.chmod(target, 0o644)
        return redirect(settings.SITE_ROOT)
    fields = engines["django"].from_string('<input type="file" name="file">').render()
    images = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    scheme = "secure" if request.is_secure() else "not secure"
    return render(
        request,
        title=f"{request.user.username} on {request.get_host()}, {scheme}",
        action=settings.SITE_ROOT,
        fields=fields,
        images=images,
        media=settings.MEDIA_URL,
    )


PREFIX = settings.SITE_ROOT.lstrip("/")
urlpatterns = [
    path(PREFIX, library),
    path(settings.LOGIN_URL.lstrip("/"), Login.as_view(next_page=settings.SITE_ROOT)),
]
wsgi = get_wsgi_application()

if __name__ == "__main__":
    from django.contrib.auth import get_user_model
    from django.core.management import call_command
    from django.db import connections
    from gunicorn.app.wsgiapp import run

    _, user, password, *options = sys.argv
    call_command("migrate", verbosity=0)
    get_user_model().objects.create_user(user, password=password)
    connections.close_all()
    # The workers are forks of this process, which has loaded Django.
    sys.argv = ["gunicorn", "--preload", *options, "application:wsgi"]
    run()
