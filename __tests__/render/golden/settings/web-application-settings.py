# Between the secret-key item and the DATABASES item.
FILE_SERVER_ROOT = 'https://files.example.org:8443/synchttp'
SERVE_STATIC = False
MEDIA_URL = '/syncmedia/'
SITE_ROOT = '/sync/'
LOGIN_URL = '/sync/accounts/login/'
COMPRESS_URL = '/syncmedia/'
STATIC_URL = '/syncmedia/assets/'
ENABLE_SETTINGS_VIA_WEB = False
CSRF_TRUSTED_ORIGINS = ['https://files.example.org:8443', 'https://[2001:db8::10]']
